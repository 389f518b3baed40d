// StripedCounters: exact event counters that threads do not fight over.
//
// Each thread adds to one of 16 stripes, so that counting on the hit path costs one uncontended atomic add. Reading
// sums the stripes. Not for: gauges, or decisions that need a consistent view of several counters. Thread-safety: all
// methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ragfs {

// The calling thread's stripe: threads get consecutive numbers.
inline size_t thread_stripe(size_t stripes) {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine % stripes;
}

template <size_t kCount>
class StripedCounters {
 public:
  void add(size_t counter, uint64_t by = 1) noexcept {
    stripes_[thread_stripe(kStripes)].values[counter].fetch_add(by, std::memory_order_relaxed);
  }
  uint64_t read(size_t counter) const noexcept {
    uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.values[counter].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  static constexpr size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::array<std::atomic<uint64_t>, kCount> values{};
  };
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace ragfs
