#include "ragfs/store/memory/memory_shard.h"

namespace ragfs {

namespace {
constexpr size_t kMostCollected = 64;  // pinned at once
constexpr size_t kMostBuckets = 64;    // looked at under one lock
}  // namespace

Entry* MemoryShard::find_locked(std::string_view key, uint64_t hash) {
  const SpinLockGuard guard(lock_);
  Entry* entry = table_.find(key, hash);
  if (entry != nullptr) entry->add_ref();
  return entry;
}

MemoryShard::Linked MemoryShard::link(Entry* entry) {
  table_.prefetch(entry->hash());
  const SpinLockGuard guard(lock_);
  return link_locked(entry);
}

MemoryShard::Linked MemoryShard::link_locked(Entry* entry) {
  Linked result;
  result.replaced = table_.find(entry->key(), entry->hash());
  entry->set_state(entry->state() | Entry::kIndexed);
  if (result.replaced != nullptr) {
    table_.replace(result.replaced, entry);
    fifo_.renew(result.replaced, entry);
    result.replaced->set_state(0);
    result.done = true;
    return result;
  }
  result.done = table_.insert(entry);
  if (result.done) {
    fifo_.insert(entry);
  } else {
    entry->set_state(0);
  }
  const size_t memory_bytes = table_.memory_bytes() + fifo_.ghost_memory_bytes();
  result.index_bytes = static_cast<int64_t>(memory_bytes) - static_cast<int64_t>(reported_bytes_);
  reported_bytes_ = memory_bytes;
  return result;
}

Entry* MemoryShard::unlink(std::string_view key, uint64_t hash) {
  const SpinLockGuard guard(lock_);
  return unlink_locked(key, hash);
}

Entry* MemoryShard::unlink_locked(std::string_view key, uint64_t hash) {
  Entry* entry = table_.find(key, hash);
  if (entry == nullptr) return nullptr;
  table_.remove(entry);
  fifo_.remove(entry);
  entry->set_state(0);
  return entry;
}

bool MemoryShard::unlink_exact(Entry* entry) {
  const SpinLockGuard guard(lock_);
  if (!table_.remove(entry)) return false;
  fifo_.remove(entry);
  entry->set_state(0);
  return true;
}

bool MemoryShard::relocate(Entry* from, Entry* to) {
  const SpinLockGuard guard(lock_);
  if (!table_.contains(from)) return false;
  fifo_.replace(from, to);
  table_.replace(from, to);
  from->set_state(0);
  return true;
}

size_t MemoryShard::evict(uint64_t now_ms, uint64_t want_bytes, bool at_any_rate, const EvictionScope& scope,
                          std::span<Entry*> out) {
  const SpinLockGuard guard(lock_);
  size_t count = 0;
  for (uint64_t bytes = 0; count < out.size() && bytes < want_bytes; bytes += out[count++]->bytes()) {
    Entry* victim = fifo_.evict(now_ms, at_any_rate, scope);
    if (victim == nullptr) break;
    table_.remove(victim);
    victim->set_state(victim->state() & (Entry::kInMain | Entry::kPreferred));  // for whom it is offered to
    out[count] = victim;
  }
  return count;
}

bool MemoryShard::collect(size_t& bucket, std::vector<Entry*>& out) {
  const SpinLockGuard guard(lock_);
  const size_t buckets = table_.bucket_count();
  for (size_t looked_at = 0; bucket < buckets && looked_at < kMostBuckets && out.size() < kMostCollected; ++looked_at) {
    table_.collect(bucket++, out);
  }
  for (Entry* entry : out) entry->add_ref();
  return bucket < buckets || !out.empty();
}

}  // namespace ragfs
