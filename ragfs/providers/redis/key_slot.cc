#include "ragfs/providers/redis/key_slot.h"

#include <array>
#include <cstddef>

namespace ragfs::redis {
namespace {

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000U) != 0 ? value << 1 ^ 0x1021U : value << 1;
    table[i] = static_cast<uint16_t>(value);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kTable = make_table();

}  // namespace

uint16_t crc16(std::string_view bytes, uint16_t start) {
  uint16_t value = start;
  for (const char byte : bytes) {
    value = static_cast<uint16_t>(value << 8 ^ kTable[(value >> 8 ^ static_cast<unsigned char>(byte)) & 0xFF]);
  }
  return value;
}

uint16_t key_slot(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

}  // namespace ragfs::redis
