// ConnectionCount: how many connections there are, from their acceptance to their end, and a wait for the last one.
//
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstddef>

#include "ragfs/base/sync.h"

namespace ragfs::server {

class ConnectionCount {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++count_;
  }
  void remove() {
    const MutexLock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  size_t count() const {
    const MutexLock lock(mutex_);
    return count_;
  }
  // False when some were left at the deadline.
  bool wait_for_none(Deadline deadline) {
    const MutexLock lock(mutex_);
    while (count_ > 0) {
      if (!none_.wait_until(mutex_, deadline) && count_ > 0) return false;
    }
    return true;
  }

 private:
  mutable Mutex mutex_;
  CondVar none_;
  size_t count_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs::server
