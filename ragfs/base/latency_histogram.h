// LatencyHistogram: how long something took, in buckets of powers of two.
//
// For: what takes microseconds or more, or is sampled: adding is three relaxed atomic additions in memory that threads
// share. Not for: counting on the hit path (striped_counters.h).
// Thread-safety: all methods may be called from any thread. A snapshot is not a moment: adding goes on meanwhile.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ragfs/base/clock.h"

namespace ragfs {

// Bucket i holds latencies below 2^(i + 7) ns (128 ns, 256 ns, ... 137 s), the last one all above.
inline constexpr size_t kLatencyBuckets = 32;
constexpr uint64_t latency_bucket_bound_ns(size_t bucket) { return uint64_t{1} << (bucket + 7); }
constexpr size_t latency_bucket_of(uint64_t latency_ns) {
  return std::min<size_t>(static_cast<size_t>(std::bit_width(latency_ns >> 7)), kLatencyBuckets - 1);
}

struct LatencySnapshot {
  uint64_t count = 0;  // what the others are from
  uint64_t sum_ns = 0;
  std::array<uint64_t, kLatencyBuckets> buckets{};

  // The bound of the bucket in which the `part`-th of all lies; 0 when there are none. part: 0 to 1.
  uint64_t quantile_ns(double part) const {
    const auto rank = static_cast<uint64_t>(part * static_cast<double>(count));
    uint64_t seen = 0;
    for (size_t i = 0; i < kLatencyBuckets; ++i) {
      seen += buckets[i];
      if (seen > rank || (seen == count && count != 0)) return latency_bucket_bound_ns(i);
    }
    return 0;
  }
  LatencySnapshot& operator+=(const LatencySnapshot& other) {
    count += other.count;
    sum_ns += other.sum_ns;
    for (size_t i = 0; i < kLatencyBuckets; ++i) buckets[i] += other.buckets[i];
    return *this;
  }
};

class LatencyHistogram {
 public:
  // Negative ones count as 0.
  void add(int64_t latency_ns) noexcept {
    const auto value = static_cast<uint64_t>(std::max<int64_t>(latency_ns, 0));
    sum_ns_.fetch_add(value, std::memory_order_relaxed);
    buckets_[latency_bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  }
  LatencySnapshot snapshot() const noexcept {
    LatencySnapshot out;
    for (size_t i = 0; i < kLatencyBuckets; ++i) {
      out.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
      out.count += out.buckets[i];
    }
    out.sum_ns = sum_ns_.load(std::memory_order_relaxed);
    return out;
  }

 private:
  std::atomic<uint64_t> sum_ns_{0};
  std::array<std::atomic<uint64_t>, kLatencyBuckets> buckets_{};
};

// From here to its end into `histogram`; nullptr: not timed, and no clock is read.
class LatencyTimer {
 public:
  explicit LatencyTimer(LatencyHistogram* histogram)
      : histogram_(histogram), start_ns_(histogram == nullptr ? 0 : Clock::system().monotonic_ns()) {}
  ~LatencyTimer() {
    if (histogram_ != nullptr) histogram_->add(Clock::system().monotonic_ns() - start_ns_);
  }
  LatencyTimer(const LatencyTimer&) = delete;
  LatencyTimer& operator=(const LatencyTimer&) = delete;

 private:
  LatencyHistogram* const histogram_;
  const int64_t start_ns_;
};

}  // namespace ragfs
