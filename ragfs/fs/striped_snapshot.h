// StripedSnapshot: an immutable value that many threads read on a hot path and that is replaced now and then.
//
// A reader pins the value through the stripe of its thread: a spinlock and a count that no other core touches as long
// as there are fewer threads than stripes, so pinning costs some ten nanoseconds on any number of cores, and no system
// call. Replacing it visits every stripe. A value lives until the last pin on it is gone. Not for: values that change
// often, or large numbers of snapshots (each holds 64 cache lines).
// Thread-safety: all methods may be called from any thread. A Pin belongs to one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "ragfs/base/striped_counters.h"
#include "ragfs/base/sync.h"

namespace ragfs {

template <typename T>
class StripedSnapshot {
  // One stripe's share in a value: when its count falls to 0, the share goes, and with the last share the value.
  struct Share {
    explicit Share(std::shared_ptr<const T> shared) : value(std::move(shared)) {}
    const std::shared_ptr<const T> value;
    std::atomic<uint32_t> refs{1};
    void drop() noexcept {
      // acq_rel: what every reader did with the value happens before its destruction.
      if (refs.fetch_sub(1, std::memory_order_acq_rel) == 1) std::unique_ptr<Share>{this};
    }
  };

 public:
  // Keeps the value of one moment alive.
  class Pin {
   public:
    Pin(Pin&& other) noexcept : share_(std::exchange(other.share_, nullptr)) {}
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    Pin& operator=(Pin&&) = delete;
    ~Pin() {
      if (share_ != nullptr) share_->drop();
    }
    const T& operator*() const noexcept { return *share_->value; }
    const T* operator->() const noexcept { return share_->value.get(); }

   private:
    friend class StripedSnapshot;
    explicit Pin(Share* share) noexcept : share_(share) {}
    Share* share_;
  };

  explicit StripedSnapshot(std::shared_ptr<const T> value) {
    for (Stripe& stripe : stripes_) stripe.share = std::make_unique<Share>(value).release();
  }
  ~StripedSnapshot() {
    for (Stripe& stripe : stripes_) stripe.share->drop();
  }
  StripedSnapshot(const StripedSnapshot&) = delete;
  StripedSnapshot& operator=(const StripedSnapshot&) = delete;

  Pin pin() const noexcept {
    Stripe& stripe = stripes_[thread_stripe(kStripes)];
    stripe.lock();
    Share* const share = stripe.share;
    share->refs.fetch_add(1, std::memory_order_relaxed);
    stripe.unlock();
    return Pin(share);
  }

  // After it returns, every new pin sees `value`. While it runs, threads may see the one or the other; callers that
  // must agree on the order of values replace under a lock of their own.
  void replace(std::shared_ptr<const T> value) {
    for (Stripe& stripe : stripes_) {
      Share* next = std::make_unique<Share>(value).release();
      stripe.lock();
      std::swap(stripe.share, next);
      stripe.unlock();
      next->drop();
    }
  }

 private:
  static constexpr size_t kStripes = 64;
  static constexpr int kSpins = 64;

  struct alignas(64) Stripe {
    std::atomic<bool> locked{false};
    Share* share = nullptr;  // guarded by `locked`

    void lock() noexcept {
      for (int spins = 0; locked.exchange(true, std::memory_order_acquire); ++spins) {
        if (spins >= kSpins) std::this_thread::yield();
      }
    }
    void unlock() noexcept { locked.store(false, std::memory_order_release); }
  };

  mutable std::array<Stripe, kStripes> stripes_;
};

}  // namespace ragfs
