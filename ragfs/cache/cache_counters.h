// CacheCounters: what the cache counts. One per coherence domain and one per mount: those up to kLastOfMounts are
// counted by mounts, the others by the domain.
//
// The names follow the RFC (kCacheCounterNames); /metrics adds the prefix "ragfs_cache_" (docs/metrics.md).
// Thread-safety: all methods may be called from any thread; adding is one uncontended atomic add.
#pragma once

#include <array>
#include <string_view>

#include "ragfs/base/striped_counters.h"

namespace ragfs {

enum class CacheCounter : uint8_t {
  file_hit,
  file_miss,
  directory_hit,
  directory_miss,
  stat_hit,
  stat_miss,
  negative_hit,
  bytes_from_cache,
  bytes_from_backend,
  verify_sampled,      // hits that were compared with the backend
  verify_wrong,        // and were not what it holds: refused
  prefetch_triggered,  // occasions to read ahead that were taken
  prefetch_filled,     // objects that were read ahead
  prefetch_hit,        // of these: asked for while they were there
  prefetch_waste,      // of these: gone, or old, before anyone asked
  prefetch_dropped,    // tasks given up: no place, no bytes left, closing
  prefetch_cooldown,   // occasions passed over, the last one being too near
  prefetch_held_back,  // occasions passed over, readers being busy
  prefetch_failed,     // backend reads ahead that failed
  bypass,              // by policy, by the caller's context, or because the cache is off
  stale_record,        // refused by a path record
  stale_generation,    // refused by a subtree record
  stale_epoch,         // of another epoch
  expired,             // past its logical expiry
  running_refused,     // a mutation that covers it was running
  damaged,             // not an intact envelope, or another path's: dropped
  fill,                // stored after a miss
  fill_refused,        // a mutation came between the read and the put
  fill_failed,         // the provider did not take it
  set,                 // write-through puts that the provider took
  set_failed,          // and those that failed
  invalidation,        // objects that a mutation made invalid
  delete_,             // of these: erases that were confirmed at once
  delete_failed,       // erases that failed and went to the retry queue
  delete_retried,      // erases made again from the retry queue
  second_erase,        // erases made again because an older fill had been running
  unknown_put,         // puts whose outcome is unknown: the key is marked
  subtree_generation_bump,
  subtree_generation_bump_failed,
  new_epoch,
  revalidated,        // verified against the backend's version and re-stamped
  revalidate_failed,  // the version differed or was unknown
  direct_read,        // backend reads through the gate: the flight table was full, or a mutation was running
  gate_timeout,
  retry_queue_overflow,
  cache_not_updated,  // strict mode: the mutation was answered with an error
};
inline constexpr size_t kCacheCounterCount = static_cast<size_t>(CacheCounter::cache_not_updated) + 1;
inline constexpr CacheCounter kLastOfMounts = CacheCounter::bypass;

// In the order of the enum.
inline constexpr std::array<std::string_view, kCacheCounterCount> kCacheCounterNames = {
    "file_hit",
    "file_miss",
    "directory_hit",
    "directory_miss",
    "stat_hit",
    "stat_miss",
    "negative_hit",
    "bytes_from_cache",
    "bytes_from_backend",
    "verify_sampled",
    "verify_wrong",
    "prefetch_triggered",
    "prefetch_filled",
    "prefetch_hit",
    "prefetch_waste",
    "prefetch_dropped",
    "prefetch_cooldown",
    "prefetch_held_back",
    "prefetch_failed",
    "bypass",
    "stale_record",
    "stale_generation",
    "stale_epoch",
    "expired",
    "running_refused",
    "damaged",
    "fill",
    "fill_refused",
    "fill_failed",
    "set",
    "set_failed",
    "invalidation",
    "delete",
    "delete_failed",
    "delete_retried",
    "second_erase",
    "unknown_put",
    "subtree_generation_bump",
    "subtree_generation_bump_failed",
    "new_epoch",
    "revalidated",
    "revalidate_failed",
    "direct_read",
    "gate_timeout",
    "retry_queue_overflow",
    "cache_not_updated"};

class CacheCounters {
 public:
  void add(CacheCounter counter, uint64_t by = 1) noexcept { counters_.add(static_cast<size_t>(counter), by); }
  uint64_t read(CacheCounter counter) const noexcept { return counters_.read(static_cast<size_t>(counter)); }

 private:
  StripedCounters<kCacheCounterCount> counters_;
};

}  // namespace ragfs
