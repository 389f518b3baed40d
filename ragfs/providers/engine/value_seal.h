// ValueSeal: 16 bytes before every value in an engine: whose it is, how long, and in full where values can be torn.
//
// An engine that takes no empty value gets one of 16 bytes; one that hands out another key's value, or bytes of two
// values at once, is found out. Layout: docs/formats.md. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ragfs::engine {

inline constexpr size_t kSealBytes = 16;

enum class SealKind : uint32_t {
  key_and_size = 1,  // for engines that hand out whole values only
  all_bytes = 2,
};

// The 16 bytes to store before header and payload.
std::string make_seal(SealKind kind, std::string_view key, std::string_view header, std::string_view payload);
// Whether `sealed`, as an engine gave it, is a value of `key` and whole.
bool seal_is_intact(std::string_view key, std::string_view sealed);

}  // namespace ragfs::engine
