// MemoryTierStats and the counters behind it.
//
// For: /metrics and tests. The counters are exact and spread over stripes, one a thread as far as they go, so that
// counting a hit does not make threads share a cache line.
// Thread-safety: add() and sum() from any threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ragfs {

struct MemoryTierStats {
  uint64_t hits = 0;
  uint64_t misses = 0;   // with the expired ones
  uint64_t expired = 0;  // of the misses: was there, its time was over
  uint64_t inserts = 0;  // puts of absent keys
  uint64_t updates = 0;  // puts over a present one
  uint64_t erases = 0;   // of objects that were there
  uint64_t evictions = 0;
  uint64_t rejected_too_large = 0;
  uint64_t rejected_full = 0;  // nothing could be evicted: readers hold too much
  uint64_t relocations = 0;    // entries moved so that a slab could be given back
  uint64_t objects = 0;
  uint64_t capacity_bytes = 0;
  uint64_t resident_bytes = 0;  // memory of all kinds, never above the capacity by more than a growing index
  uint64_t index_bytes = 0;     // of these: tables and ghosts
  uint64_t detached_bytes = 0;  // of these: in objects that were removed or replaced while readers held them
};

class MemoryTierCounters {
 public:
  enum Kind : uint8_t {
    kHits,
    kMisses,
    kExpired,
    kInserts,
    kUpdates,
    kErases,
    kEvictions,
    kRejectedTooLarge,
    kRejectedFull,
    kRelocations,
    kKinds
  };

  void add(Kind kind, uint64_t by = 1) noexcept {
    stripes_[stripe_of_thread()].counts[kind].fetch_add(by, std::memory_order_relaxed);
  }
  uint64_t sum(Kind kind) const noexcept {
    uint64_t total = 0;
    for (const Stripe& stripe : stripes_) total += stripe.counts[kind].load(std::memory_order_relaxed);
    return total;
  }

 private:
  static constexpr size_t kStripes = 32;
  struct alignas(128) Stripe {
    std::array<std::atomic<uint64_t>, kKinds> counts{};
  };
  static size_t stripe_of_thread() noexcept;

  std::array<Stripe, kStripes> stripes_{};
};

}  // namespace ragfs
