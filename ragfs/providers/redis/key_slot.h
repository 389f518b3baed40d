// The slot of a key in a Redis cluster: CRC-16 (XMODEM) of the key, or of what stands between its first braces.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ragfs::redis {

inline constexpr uint16_t kSlots = 16384;

uint16_t crc16(std::string_view bytes, uint16_t start = 0);
uint16_t key_slot(std::string_view key);

}  // namespace ragfs::redis
