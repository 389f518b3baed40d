// StripedCounters: exact event counters that threads do not fight over.
//
// Each thread adds to cells of its own (thread_slot.h), so that counting on the hit path is a plain load and store.
// Reading sums the stripes. Not for: gauges, or decisions that need a consistent view of several counters.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ragfs/base/thread_slot.h"

namespace ragfs {

template <size_t kCount>
class StripedCounters {
 public:
  void add(size_t counter, uint64_t by = 1) noexcept {
    const size_t slot = thread_slot();
    add_in_slot(stripes_[slot].values[counter], slot, by);
  }
  uint64_t read(size_t counter) const noexcept {
    uint64_t sum = 0;
    for (const Stripe& stripe : stripes_) sum += stripe.values[counter].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Stripe {
    std::array<std::atomic<uint64_t>, kCount> values{};
  };
  std::array<Stripe, kThreadSlots + 1> stripes_;
};

}  // namespace ragfs
