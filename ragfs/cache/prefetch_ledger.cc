#include "ragfs/cache/prefetch_ledger.h"

namespace ragfs {

PrefetchLedger::PrefetchLedger() : buckets_(std::make_unique<Bucket[]>(kBuckets)) {}

PrefetchLedger::Taken PrefetchLedger::take_from(Bucket& bucket, uint64_t id) noexcept {
  for (std::atomic<uint64_t>& word : bucket.words) {
    uint64_t seen = word.load(std::memory_order_relaxed);
    if ((seen & kIdMask) != id || seen == 0) continue;
    // Of two readers at once the first one counts.
    if (!word.compare_exchange_strong(seen, 0, std::memory_order_relaxed)) return Taken::no;
    size_.fetch_sub(1, std::memory_order_relaxed);
    return (seen & ~kIdMask) != 0 ? Taken::marked : Taken::plain;
  }
  return Taken::no;
}

size_t PrefetchLedger::add(uint64_t id, bool marked, int64_t now_ms) noexcept {
  if ((id & kIdMask) == 0) return 0;  // looks like a free place
  Bucket& bucket = buckets_[bucket_of(id)];
  // Read ahead once more before anyone asked: the first time was for nothing.
  const size_t again = take_from(bucket, id & kIdMask) != Taken::no ? 1 : 0;
  size_t place = 0;
  for (size_t i = 0; i < kWays; ++i) {
    const bool free = bucket.words[i].load(std::memory_order_relaxed) == 0;
    const bool older =
        bucket.noted_ms[i].load(std::memory_order_relaxed) < bucket.noted_ms[place].load(std::memory_order_relaxed);
    if (free || older) place = i;
    if (free) break;
  }
  bucket.noted_ms[place].store(now_ms, std::memory_order_relaxed);
  const uint64_t word = (id & kIdMask) | (marked ? 1 : 0);
  const uint64_t before = bucket.words[place].exchange(word, std::memory_order_relaxed);
  if (before != 0) return again + 1;
  size_.fetch_add(1, std::memory_order_relaxed);
  return again;
}

size_t PrefetchLedger::forget_before(int64_t since_ms) noexcept {
  size_t forgotten = 0;
  for (size_t b = 0; b < kBuckets && size() > 0; ++b) {
    for (size_t i = 0; i < kWays; ++i) {
      uint64_t word = buckets_[b].words[i].load(std::memory_order_relaxed);
      if (word == 0 || buckets_[b].noted_ms[i].load(std::memory_order_relaxed) >= since_ms) continue;
      if (!buckets_[b].words[i].compare_exchange_strong(word, 0, std::memory_order_relaxed)) continue;
      size_.fetch_sub(1, std::memory_order_relaxed);
      ++forgotten;
    }
  }
  return forgotten;
}

}  // namespace ragfs
