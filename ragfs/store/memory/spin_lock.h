// SpinLock: one word, for critical sections of a few dozen instructions that touch memory only.
//
// For: the writers of a shard of the memory tier and of a size class of its heap. A waiter spins a bounded while, then
// yields, then sleeps, so a holder that lost its CPU is given one. Not for: anything that allocates much, copies
// values, calls back or makes a system call while it is held (use Mutex there).
// Thread-safety: that is what it is for. Not recursive, not fair.
#pragma once

#include <atomic>

#include "ragfs/base/sync.h"

namespace ragfs {

class RAGFS_CAPABILITY("mutex") SpinLock {
 public:
  void lock() RAGFS_ACQUIRE() {
    if (!held_.exchange(true, std::memory_order_acquire)) return;
    lock_contended();
  }
  void unlock() RAGFS_RELEASE() { held_.store(false, std::memory_order_release); }

 private:
  void lock_contended() noexcept;

  std::atomic<bool> held_{false};
};

class RAGFS_SCOPED_CAPABILITY SpinLockGuard {
 public:
  explicit SpinLockGuard(SpinLock& lock) RAGFS_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  ~SpinLockGuard() RAGFS_RELEASE() { lock_.unlock(); }
  SpinLockGuard(const SpinLockGuard&) = delete;
  SpinLockGuard& operator=(const SpinLockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace ragfs
