#include "ragfs/store/memory/entry.h"

namespace ragfs {

Entry* Entry::begin(void* cell, SlabHeap* heap, std::string_view key, uint64_t hash, size_t value_bytes,
                    uint64_t expires_ms, Release release) noexcept {
  auto* entry = static_cast<Entry*>(cell);
  entry->heap = heap;
  entry->value_size_ = static_cast<uint32_t>(value_bytes);
  entry->hash_ = hash;
  entry->expires_low_ = static_cast<uint32_t>(expires_ms);
  entry->expires_high_ = static_cast<uint8_t>(expires_ms >> 32);
  entry->key_size_ = static_cast<uint8_t>(key.size());
  entry->set_frequency(0);
  entry->set_state(0);
  std::memcpy(const_cast<char*>(entry->text()), key.data(), key.size());
  // Last: from here on a reader with an old pointer can hold the cell, so nothing may be left unset.
  entry->revive(release);
  return entry;
}

}  // namespace ragfs
