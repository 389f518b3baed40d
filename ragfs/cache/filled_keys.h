// FilledKeys: which objects this process has filled after a read, approximately.
//
// For: the admission of write-through puts (policy.h): what nobody has read is not worth memory when it is written. A
// fixed table of fingerprints, two places for each key, the newest in: it forgets, and it may take one key for another
// (about 1 in 16,000), which costs a put or saves one and never an answer. Not for: what has to be known.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ragfs {

class FilledKeys {
 public:
  // `hash` is the key's: 64 well-mixed bits.
  void add(uint64_t hash) noexcept {
    Pair& pair = pairs_[hash % kPairs];
    const uint16_t print = print_of(hash);
    const uint16_t newest = pair[0].load(std::memory_order_relaxed);
    if (newest == print) return;
    pair[1].store(newest, std::memory_order_relaxed);
    pair[0].store(print, std::memory_order_relaxed);
  }
  bool has(uint64_t hash) const noexcept {
    const Pair& pair = pairs_[hash % kPairs];
    const uint16_t print = print_of(hash);
    return pair[0].load(std::memory_order_relaxed) == print || pair[1].load(std::memory_order_relaxed) == print;
  }

 private:
  static constexpr size_t kPairs = size_t{1} << 16;  // 256 KiB in all
  using Pair = std::array<std::atomic<uint16_t>, 2>;
  static uint16_t print_of(uint64_t hash) noexcept { return static_cast<uint16_t>(hash >> 48 | 1); }

  std::array<Pair, kPairs> pairs_{};
};

}  // namespace ragfs
