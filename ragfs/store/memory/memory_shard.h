// MemoryShard: one part of a memory tier: the index, the eviction order and the lock of the objects whose hash falls
// into it.
//
// For: MemoryTier. It knows entries, not memory: cells come from outside, and every Entry* it returns carries a
// reference that the caller drops, outside the lock. Not for: values, budgets, statistics.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ragfs/store/memory/entry.h"
#include "ragfs/store/memory/entry_table.h"
#include "ragfs/store/memory/s3_fifo.h"
#include "ragfs/store/memory/spin_lock.h"

namespace ragfs {

class alignas(64) MemoryShard {
 public:
  explicit MemoryShard(EntryTable table) : table_(std::move(table)), reported_bytes_(table_.memory_bytes()) {}

  // What link() did. `replaced` is the former entry of the key, or nullptr.
  struct Linked {
    bool done = false;  // false: no memory for the index
    Entry* replaced = nullptr;
    int64_t index_bytes = 0;  // by which index and ghosts grew since the last link
  };

  // The entry, pinned, or nullptr.
  Entry* find(std::string_view key, uint64_t hash) RAGFS_EXCLUDES(lock_) {
    if (Entry* entry = table_.find_unlocked(key, hash)) return entry;
    return find_locked(key, hash);
  }
  // The entry of this hash, pinned, or nullptr: not there, or not found without the lock.
  Entry* find_by_hash(uint64_t hash) const noexcept {
    return table_.find_unlocked(hash, [](const Entry&) { return true; });
  }
  // Takes the caller's reference over when done.
  Linked link(Entry* entry) RAGFS_EXCLUDES(lock_);
  // Takes the object out; nullptr when it is absent.
  Entry* unlink(std::string_view key, uint64_t hash) RAGFS_EXCLUDES(lock_);
  // Takes this very entry out; false when it is not in the index any more.
  bool unlink_exact(Entry* entry) RAGFS_EXCLUDES(lock_);
  // Puts `to`, a copy of `from`, in its place; false when `from` is not in the index any more. Takes the caller's
  // reference on `to` over; the index's on `from` passes to the caller.
  bool relocate(Entry* from, Entry* to) RAGFS_EXCLUDES(lock_);
  // Takes victims out until they have `want_bytes` in all, at most out.size(); how many. See S3Fifo::evict().
  size_t evict(uint64_t now_ms, uint64_t want_bytes, bool at_any_rate, const EvictionScope& scope,
               std::span<Entry*> out) RAGFS_EXCLUDES(lock_);
  // Pins the entries of some buckets from `bucket` on and moves it past them; false when there are no more buckets.
  bool collect(size_t& bucket, std::vector<Entry*>& out) RAGFS_EXCLUDES(lock_);
  // Asks for the memory that a lookup of this hash will touch first.
  void prefetch(uint64_t hash) const noexcept { table_.prefetch(hash); }

  // --- for several changes that are seen as one ---
  SpinLock& lock() RAGFS_RETURN_CAPABILITY(lock_) { return lock_; }
  Linked link_locked(Entry* entry) RAGFS_REQUIRES(lock_);
  Entry* unlink_locked(std::string_view key, uint64_t hash) RAGFS_REQUIRES(lock_);

 private:
  Entry* find_locked(std::string_view key, uint64_t hash) RAGFS_EXCLUDES(lock_);

  EntryTable table_;  // changed under lock_, read without
  SpinLock lock_;
  S3Fifo fifo_ RAGFS_GUARDED_BY(lock_);
  size_t reported_bytes_ RAGFS_GUARDED_BY(lock_);
};

}  // namespace ragfs
