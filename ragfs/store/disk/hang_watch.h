// HangWatch: which calls on a disk are under way, and since when.
//
// For: the watchdog: a hung disk gives no errno, only calls that do not come back. Not for: latency figures.
// Thread-safety: all methods may be called from any thread; no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ragfs/base/clock.h"

namespace ragfs {

class HangWatch {
 public:
  // A call under way while it lives. When all places are taken it is not watched (others are).
  class Call {
   public:
    Call(HangWatch& watch, const Clock& clock) : place_(watch.claim(clock.monotonic_ns())) {}
    ~Call() {
      if (place_ != nullptr) place_->store(0, std::memory_order_release);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    std::atomic<int64_t>* place_;
  };

  // How many calls have been under way for longer than `limit_ns`.
  size_t stuck(int64_t now_ns, int64_t limit_ns) const {
    size_t count = 0;
    for (const auto& place : places_) {
      const int64_t began = place.load(std::memory_order_acquire);
      if (began != 0 && now_ns - began > limit_ns) ++count;
    }
    return count;
  }

 private:
  std::atomic<int64_t>* claim(int64_t now_ns) {
    for (auto& place : places_) {
      int64_t free = 0;
      if (place.load(std::memory_order_relaxed) == 0 && place.compare_exchange_strong(free, now_ns)) return &place;
    }
    return nullptr;
  }
  std::array<std::atomic<int64_t>, 64> places_{};
};

}  // namespace ragfs
