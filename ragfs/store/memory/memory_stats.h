// MemoryTierStats and the counters behind it.
//
// For: /metrics and tests. The counters are exact; threads do not share a cache line when they count a hit.
// Thread-safety: add() and sum() from any threads.
#pragma once

#include <cstdint>

#include "ragfs/base/striped_counters.h"

namespace ragfs {

struct MemoryTierStats {
  uint64_t hits = 0;
  uint64_t misses = 0;   // with the expired ones
  uint64_t expired = 0;  // of the misses: was there, its time was over
  uint64_t inserts = 0;  // puts of absent keys
  uint64_t updates = 0;  // puts over a present one
  uint64_t erases = 0;   // of objects that were there
  uint64_t evictions = 0;
  uint64_t share_evictions = 0;  // of these: made for an owner above its share, of its own objects
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
    kShareEvictions,
    kRejectedTooLarge,
    kRejectedFull,
    kRelocations,
    kKinds
  };

  void add(Kind kind, uint64_t by = 1) noexcept { counters_.add(kind, by); }
  uint64_t sum(Kind kind) const noexcept { return counters_.read(kind); }

 private:
  StripedCounters<kKinds> counters_;
};

}  // namespace ragfs
