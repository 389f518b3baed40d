#include "ragfs/base/sync.h"

#include <chrono>

namespace ragfs {

bool CondVar::wait_until(Mutex& mutex, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  bool in_time = true;
  if (deadline.is_never()) {
    condition_.wait(lock);
  } else {
    // steady_clock is CLOCK_MONOTONIC on Linux, the clock that Deadline counts in.
    const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(deadline.at_monotonic_ns())};
    in_time = condition_.wait_until(lock, until) == std::cv_status::no_timeout;
  }
  lock.release();  // the caller goes on holding it
  return in_time;
}

}  // namespace ragfs
