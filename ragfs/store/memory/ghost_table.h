// GhostTable: remembers, in 4 bytes each, which objects were evicted lately.
//
// For: S3-FIFO: what comes back soon after it was evicted from the small queue goes into the main one. Not for: exact
// answers; a false "yes" (about 1 in 10^8) only puts an object into the other queue. Sets of 16, oldest out first.
// Thread-safety: none; belongs to a shard's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ragfs {

class GhostTable {
 public:
  // Keeps about the last `capacity` evictions; grows to it when needed, never shrinks.
  void add(uint64_t hash, size_t capacity);
  // True if it was there; it is forgotten then.
  bool take(uint64_t hash) noexcept;
  size_t memory_bytes() const noexcept { return slots_.capacity() * sizeof(uint32_t); }

 private:
  static constexpr size_t kWays = 16;  // one cache line
  static uint32_t fingerprint_of(uint64_t hash) noexcept { return static_cast<uint32_t>(hash) | 1; }
  uint32_t* set_of(uint32_t fingerprint) noexcept {
    return slots_.data() + (fingerprint >> 1 & (slots_.size() / kWays - 1)) * kWays;
  }
  void grow();

  std::vector<uint32_t> slots_;  // sets of kWays, newest first, 0 = free
};

}  // namespace ragfs
