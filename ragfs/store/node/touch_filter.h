// TouchFilter: whether an object was here before, for admission by second touch.
//
// For: keeping what is used once from being written to a disk. One fingerprint of 16 bits a slot, chosen by hash; a
// newer object takes an older one's slot, so the filter forgets by itself. Answers "yes" for one stranger in 32,768.
// Not for: exact answers. Thread-safety: all methods may be called from any thread; no lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ragfs {

class TouchFilter {
 public:
  // Remembers about that many objects, 2 bytes each; at most 16 Mi.
  explicit TouchFilter(uint64_t objects)
      : slots_(std::bit_ceil(std::clamp<uint64_t>(objects, 1024, uint64_t{1} << 24))) {}

  // Whether it was noted before; notes it.
  bool touch(uint64_t hash) noexcept {
    std::atomic<uint16_t>& slot = slots_[(hash >> 16) & (slots_.size() - 1)];
    const auto print = static_cast<uint16_t>((hash & 0xffff) | 1);
    return slot.exchange(print, std::memory_order_relaxed) == print;
  }

 private:
  std::vector<std::atomic<uint16_t>> slots_;
};

}  // namespace ragfs
