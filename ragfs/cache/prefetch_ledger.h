// PrefetchLedger: which objects were read ahead and not asked for yet.
//
// It tells a hit that reading ahead has made from any other, and finds out what was read ahead for nothing. An entry
// leaves it once: taken by the first reader, pushed out by a newer one of its bucket, or forgotten when it is old.
// Bound: kBuckets * kWays entries. Hashes stand for paths: a collision miscounts, nothing more.
// Thread-safety: all methods may be called from any thread; take() takes no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ragfs {

class PrefetchLedger {
 public:
  enum class Taken : uint8_t { no, plain, marked };

  PrefetchLedger();

  // Notes an object. `marked`: whoever takes it is told so. How many others went unread for it: 0 or 1.
  size_t add(uint64_t id, bool marked, int64_t now_ms) noexcept;
  // Whether `id` was there; it no longer is.
  Taken take(uint64_t id) noexcept {
    if (size_.load(std::memory_order_relaxed) == 0) return Taken::no;
    return take_from(buckets_[bucket_of(id)], id & kIdMask);
  }
  // Forgets what was noted before `since_ms`: how many.
  size_t forget_before(int64_t since_ms) noexcept;
  size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuckets = 16'384;
  static constexpr size_t kWays = 4;
  static constexpr uint64_t kIdMask = ~uint64_t{1};  // bit 0 of a word: marked
  struct Bucket {
    std::array<std::atomic<uint64_t>, kWays> words{};  // 0 = free
    std::array<std::atomic<int64_t>, kWays> noted_ms{};
  };
  static size_t bucket_of(uint64_t id) noexcept { return (id >> 17) % kBuckets; }
  Taken take_from(Bucket& bucket, uint64_t id) noexcept;

  std::atomic<size_t> size_{0};
  std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace ragfs
