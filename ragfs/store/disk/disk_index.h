// DiskIndex: which object lies where in the buckets of one disk directory.
//
// For: one probe between a key's hash and one aligned read. It knows no keys: a record's key is compared when it is
// read. Of two copies of a hash the one with the higher generation counts. Not for: what was removed (tombstone_log.h).
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ragfs/base/sync.h"
#include "ragfs/store/disk/flat_table.h"

namespace ragfs {

struct DiskEntry {
  uint64_t hash = 0;
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;  // since 1970; 0 = never
  uint32_t bucket = 0;
  uint32_t offset = 0;
  uint32_t size = 0;  // of the record
  uint8_t hits = 0;   // since it was written, up to 255
  bool used = false;
  bool spoiled = false;  // it could not be read; known still, because its bucket lists it
};
static_assert(sizeof(DiskEntry) == 40, "the index memory of every object counts");

class DiskIndex {
 public:
  // What can be read. Counts a hit.
  std::optional<DiskEntry> find(uint64_t hash) {
    Shard& shard = shard_of(hash);
    const MutexLock lock(shard.mutex);
    DiskEntry* entry = shard.table.find(hash);
    if (entry == nullptr || entry->spoiled) return std::nullopt;
    if (entry->hits < UINT8_MAX) ++entry->hits;
    return *entry;
  }
  // Without counting.
  std::optional<DiskEntry> peek(uint64_t hash) {
    Shard& shard = shard_of(hash);
    const MutexLock lock(shard.mutex);
    const DiskEntry* entry = shard.table.find(hash);
    return entry == nullptr || entry->spoiled ? std::nullopt : std::optional<DiskEntry>(*entry);
  }
  // The copy in this bucket is not found any more, but erase() meets it, until its bucket goes.
  void spoil(uint64_t hash, uint32_t bucket) {
    Shard& shard = shard_of(hash);
    const MutexLock lock(shard.mutex);
    DiskEntry* entry = shard.table.find(hash);
    if (entry != nullptr && entry->bucket == bucket) entry->spoiled = true;
  }
  // False when a copy with a higher generation is there; a copy of the same generation is replaced (it was moved).
  bool insert(const DiskEntry& entry) {
    Shard& shard = shard_of(entry.hash);
    const MutexLock lock(shard.mutex);
    const auto [slot, fresh] = shard.table.insert(entry.hash);
    if (!fresh && slot->generation > entry.generation) return false;
    *slot = entry;
    slot->used = true;
    return true;
  }
  // As insert(), but of two copies of one generation the one that is there stays.
  bool insert_recovered(const DiskEntry& entry) {
    Shard& shard = shard_of(entry.hash);
    const MutexLock lock(shard.mutex);
    const auto [slot, fresh] = shard.table.insert(entry.hash);
    if (!fresh && slot->generation >= entry.generation) return false;
    *slot = entry;
    slot->used = true;
    return true;
  }
  // True if a copy was there whose generation is at most `most_generation`.
  bool erase(uint64_t hash, uint64_t most_generation) {
    Shard& shard = shard_of(hash);
    const MutexLock lock(shard.mutex);
    DiskEntry* entry = shard.table.find(hash);
    if (entry == nullptr || entry->generation > most_generation) return false;
    shard.table.erase(entry);
    return true;
  }
  // Only the copy in this bucket.
  bool erase_in(uint64_t hash, uint32_t bucket) {
    Shard& shard = shard_of(hash);
    const MutexLock lock(shard.mutex);
    DiskEntry* entry = shard.table.find(hash);
    if (entry == nullptr || entry->bucket != bucket) return false;
    shard.table.erase(entry);
    return true;
  }
  void clear() {
    for (Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      shard.table.clear();
    }
  }
  uint64_t size() const {
    uint64_t sum = 0;
    for (const Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      sum += shard.table.size();
    }
    return sum;
  }
  uint64_t memory_bytes() const {
    uint64_t sum = 0;
    for (const Shard& shard : shards_) {
      const MutexLock lock(shard.mutex);
      sum += shard.table.memory_bytes();
    }
    return sum;
  }

 private:
  struct alignas(64) Shard {
    mutable Mutex mutex;
    FlatTable<DiskEntry> table RAGFS_GUARDED_BY(mutex);
  };
  Shard& shard_of(uint64_t hash) { return shards_[hash % shards_.size()]; }
  std::array<Shard, 64> shards_;
};

}  // namespace ragfs
