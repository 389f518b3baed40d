// IncarnationListener: who wants to know that a provider's incarnation changed (CacheProvider::watch_incarnation).
//
// For: providers. Not for: deciding what a change is.
// Thread-safety: all methods may be called from any thread; the listener is called without a lock.
#pragma once

#include <functional>
#include <utility>

#include "ragfs/base/sync.h"

namespace ragfs {

class IncarnationListener {
 public:
  // Replaces the listener (none when empty); returns when the former one is not running any more, which takes as long
  // as the listener takes. Not from inside a listener.
  void watch(std::function<void()> listener) {
    MutexLock lock(mutex_);
    listener_ = std::move(listener);
    while (telling_ > 0) idle_.wait_until(mutex_, Deadline::never());
  }
  // Calls the listener, on this thread.
  void tell() {
    std::function<void()> listener;
    {
      MutexLock lock(mutex_);
      listener = listener_;
      if (!listener) return;
      ++telling_;
    }
    listener();
    MutexLock lock(mutex_);
    if (--telling_ == 0) idle_.notify_all();
  }

 private:
  Mutex mutex_;
  CondVar idle_;
  std::function<void()> listener_ RAGFS_GUARDED_BY(mutex_);
  int telling_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs
