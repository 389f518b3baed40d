// NegativeCache: remembers, for a moment, that a path does not exist.
//
// In the process only, for the names that the policy lists, for a true "not found". An entry carries the start value of
// the backend read that found nothing, and its epoch; whoever asks compares them, as for an object. A hit never re-arms
// its time. Mutations take entries out as well (their records may be let go later).
// Bounds: at most `max_entries`; a full table takes no new entry.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/key_space.h"
#include "ragfs/cache/rules.h"

namespace ragfs {

// Whether a mutation that affects an object of this kind ends what is known of its path's absence. A listing counts:
// where a directory was made, maybe on the way to something below it, the path exists.
inline bool ends_absence(ObjectKind kind) {
  return kind == ObjectKind::file || (kind == ObjectKind::listing && rule_enabled(Rule::kNegativeAncestors));
}

class NegativeCache {
 public:
  struct Absence {
    uint64_t start = 0;  // mutation clock when the read that found nothing began
    uint64_t epoch = 0;  // current then
  };

  NegativeCache(const Clock& clock, size_t max_entries) : clock_(clock), max_entries_(max_entries) {}

  // Of the read that found `id` absent; nothing when unknown or past its time.
  std::optional<Absence> find(uint64_t id);
  void remember(uint64_t id, Absence absence, int64_t ttl_ms);
  void forget(uint64_t id);
  void clear();
  size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    Absence absence;
    int64_t until_ns;
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<uint64_t, Entry> entries RAGFS_GUARDED_BY(mutex);
  };
  static constexpr size_t kShards = 16;
  Shard& shard_of(uint64_t id) { return shards_[id % kShards]; }

  const Clock& clock_;
  const size_t max_entries_;
  std::atomic<size_t> size_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace ragfs
