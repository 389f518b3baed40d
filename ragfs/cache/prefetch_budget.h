// PrefetchBudget: how many bytes may be read ahead now. A bucket that holds one second's worth and fills steadily.
//
// How large a file is, is known only when it has been read: spending may overdraw, and then nothing is affordable until
// the debt is made good. Thread-safety: all methods may be called from any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"

namespace ragfs {

class PrefetchBudget {
 public:
  PrefetchBudget(uint64_t bytes_per_second, const Clock& clock)
      : rate_(static_cast<double>(bytes_per_second)), clock_(clock), left_(rate_), seen_ns_(clock.monotonic_ns()) {}

  bool affords() {
    MutexLock lock(mutex_);
    fill_up();
    return left_ > 0;
  }
  void spend(uint64_t bytes) {
    MutexLock lock(mutex_);
    fill_up();
    left_ -= static_cast<double>(bytes);
  }

 private:
  void fill_up() RAGFS_REQUIRES(mutex_) {
    constexpr double kNsPerSecond = 1e9;
    const int64_t now_ns = clock_.monotonic_ns();
    left_ = std::min(rate_, left_ + rate_ * static_cast<double>(now_ns - seen_ns_) / kNsPerSecond);
    seen_ns_ = now_ns;
  }

  const double rate_;
  const Clock& clock_;
  Mutex mutex_;
  double left_ RAGFS_GUARDED_BY(mutex_);
  int64_t seen_ns_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
