#include "ragfs/cache/negative_cache.h"

namespace ragfs {

std::optional<NegativeCache::Absence> NegativeCache::find(uint64_t id) {
  if (size() == 0) return std::nullopt;
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  const auto found = shard.entries.find(id);
  if (found == shard.entries.end()) return std::nullopt;
  if (clock_.monotonic_ns() < found->second.until_ns) return found->second.absence;
  shard.entries.erase(found);
  size_.fetch_sub(1, std::memory_order_relaxed);
  return std::nullopt;
}

void NegativeCache::remember(uint64_t id, Absence absence, int64_t ttl_ms) {
  const int64_t now_ns = clock_.monotonic_ns();
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  if (size() >= max_entries_) {
    // Room is made in this shard from what is past its time; without any, the answer is simply not remembered.
    const size_t dropped = std::erase_if(shard.entries, [&](const auto& at) { return at.second.until_ns <= now_ns; });
    size_.fetch_sub(dropped, std::memory_order_relaxed);
    if (dropped == 0) return;
  }
  const bool added = shard.entries.insert_or_assign(id, Entry{absence, now_ns + ttl_ms * 1'000'000}).second;
  if (added) size_.fetch_add(1, std::memory_order_relaxed);
}

void NegativeCache::forget(uint64_t id) {
  if (size() == 0) return;
  Shard& shard = shard_of(id);
  MutexLock lock(shard.mutex);
  size_.fetch_sub(shard.entries.erase(id), std::memory_order_relaxed);
}

void NegativeCache::clear() {
  if (size() == 0) return;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    size_.fetch_sub(shard.entries.size(), std::memory_order_relaxed);
    shard.entries.clear();
  }
}

}  // namespace ragfs
