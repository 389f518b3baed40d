// Entry: one object of the memory tier: this header, the key, the value, in one cell of the SlabHeap.
//
// An entry is a BytesOwner, so a hit hands out a Bytes that pins it, without a copy. Its references are: one while it
// is in the index, one for each Bytes, one for each operation that is at work with it. The last one gives the cell
// back.
//
// Cells are never unmapped and never change their size class, so the reference count of an entry stays at its place
// for ever: a reader may try_add_ref() through an old pointer, and learns from the index whether it got what it wanted
// (see entry_table.h). For the same reason no constructor ever runs: a cell starts as zeros, which is a free entry.
//
// Thread-safety: what is set before publication is constant until the last reference is dropped; links belong to the
// shard's lock; frequency and state are atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ragfs/base/bytes.h"

namespace ragfs {

class SlabHeap;
class Entry;

// Apart, and first: what a lookup does not touch. The rest of the header then adjoins the key.
struct EntryLinks {
  Entry* prev;  // towards the head (newer) of its queue; a free cell: unused
  Entry* next;  // towards the tail (older); a free cell: the next free one of its slab
  SlabHeap* heap;
};

class Entry final : public EntryLinks, public BytesOwner {
 public:
  static constexpr size_t kMaxKeyBytes = 255;
  static constexpr uint8_t kMaxFrequency = 3;
  // Bits of the state.
  static constexpr uint8_t kIndexed = 1;    // in the index
  static constexpr uint8_t kInMain = 2;     // in the main queue, else in the small one
  static constexpr uint8_t kPreferred = 4;  // stays longer
  static constexpr uint8_t kDetached = 8;   // left the index while readers held it

  Entry() = delete;

  static constexpr size_t bytes_for(size_t key_bytes, size_t value_bytes);
  size_t bytes() const noexcept;

  // Fills a free cell: key and room for the value; one reference, the caller's.
  // `expires_ms` is in the tier's own time; 0 = never; at most 2^40 - 1.
  static Entry* begin(void* cell, SlabHeap* heap, std::string_view key, uint64_t hash, size_t value_bytes,
                      uint64_t expires_ms, Release release) noexcept;

  uint64_t hash() const noexcept { return hash_; }
  std::string_view key() const noexcept { return {text(), key_size_}; }
  const char* value() const noexcept { return text() + key_size_; }
  char* value() noexcept { return const_cast<char*>(text()) + key_size_; }
  size_t value_size() const noexcept { return value_size_; }
  std::string_view value_view() const noexcept { return {value(), value_size_}; }
  uint64_t expires_ms() const noexcept { return uint64_t{expires_high_} << 32 | expires_low_; }
  bool has_key(std::string_view key_text) const noexcept {
    return key_size_ == key_text.size() && std::memcmp(text(), key_text.data(), key_size_) == 0;
  }
  bool is(std::string_view key_text, uint64_t hash) const noexcept { return hash_ == hash && has_key(key_text); }

  // How often it was hit, up to kMaxFrequency. Concurrent hits may count as one.
  uint8_t frequency() const noexcept { return frequency_.load(std::memory_order_relaxed); }
  void set_frequency(uint8_t frequency) noexcept { frequency_.store(frequency, std::memory_order_relaxed); }
  void count_hit() noexcept {
    const uint8_t seen = frequency();
    if (seen < kMaxFrequency) set_frequency(seen + 1);
  }
  // Acquire: with kIndexed everything of the entry is visible.
  uint8_t state() const noexcept { return state_.load(std::memory_order_acquire); }
  bool in_main() const noexcept { return (state_.load(std::memory_order_relaxed) & kInMain) != 0; }
  void set_state(uint8_t state) noexcept { state_.store(state, std::memory_order_release); }

  // The lines a hit needs, asked for together: header and key, then what a cache object begins with (its envelope's
  // fields, its path, the first bytes of its payload).
  static void prefetch(const Entry* entry) noexcept {
    const char* const at = reinterpret_cast<const char*>(entry);
    __builtin_prefetch(at + 40, 1);
    for (size_t offset = 104; offset <= 104 + 4 * 64; offset += 64) __builtin_prefetch(at + offset, 0);
  }

 private:
  const char* text() const noexcept { return reinterpret_cast<const char*>(this + 1); }

  uint32_t value_size_;
  uint64_t hash_;
  uint32_t expires_low_;
  uint8_t expires_high_;
  uint8_t key_size_;
  std::atomic<uint8_t> frequency_;
  std::atomic<uint8_t> state_;
};

static_assert(sizeof(Entry) == 64, "the index memory of every object counts");

constexpr size_t Entry::bytes_for(size_t key_bytes, size_t value_bytes) {
  return sizeof(Entry) + key_bytes + value_bytes;
}
inline size_t Entry::bytes() const noexcept { return bytes_for(key_size_, value_size_); }

}  // namespace ragfs
