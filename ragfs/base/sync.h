// Mutex, SharedMutex, their scoped locks and CondVar, with clang's thread-safety annotations.
//
// For: every lock of the project, so that clang 19 checks at compile time which data a lock guards.
// House rule: no Mutex is held across an RPC, a disk call or a callback.
// Thread-safety: that is what they are for. A CondVar waits with the Mutex it is given.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "ragfs/base/context.h"

#if defined(__clang__)
#define RAGFS_ATTRIBUTE(x) __attribute__((x))
#else
#define RAGFS_ATTRIBUTE(x)
#endif
#define RAGFS_CAPABILITY(x) RAGFS_ATTRIBUTE(capability(x))
#define RAGFS_SCOPED_CAPABILITY RAGFS_ATTRIBUTE(scoped_lockable)
#define RAGFS_GUARDED_BY(x) RAGFS_ATTRIBUTE(guarded_by(x))
#define RAGFS_REQUIRES(...) RAGFS_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define RAGFS_ACQUIRE(...) RAGFS_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RAGFS_REQUIRES_SHARED(...) RAGFS_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
#define RAGFS_ACQUIRE_SHARED(...) RAGFS_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define RAGFS_RELEASE_SHARED(...) RAGFS_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define RAGFS_RELEASE_GENERIC(...) RAGFS_ATTRIBUTE(release_generic_capability(__VA_ARGS__))
#define RAGFS_RELEASE(...) RAGFS_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RAGFS_RETURN_CAPABILITY(x) RAGFS_ATTRIBUTE(lock_returned(x))
#define RAGFS_EXCLUDES(...) RAGFS_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define RAGFS_NO_THREAD_SAFETY_ANALYSIS RAGFS_ATTRIBUTE(no_thread_safety_analysis)

namespace ragfs {

class RAGFS_CAPABILITY("mutex") Mutex {
 public:
  void lock() RAGFS_ACQUIRE() { mutex_.lock(); }
  void unlock() RAGFS_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class RAGFS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RAGFS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RAGFS_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Many readers or one writer. For what is read far more often than written; not usable with a CondVar.
class RAGFS_CAPABILITY("shared_mutex") SharedMutex {
 public:
  void lock() RAGFS_ACQUIRE() { mutex_.lock(); }
  void unlock() RAGFS_RELEASE() { mutex_.unlock(); }
  void lock_shared() RAGFS_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RAGFS_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class RAGFS_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) RAGFS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() RAGFS_RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class RAGFS_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) RAGFS_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  ~ReaderLock() RAGFS_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class CondVar {
 public:
  // Waits until notified, spuriously woken or past the deadline; false when the deadline has passed.
  // The caller holds `mutex` before and after, and re-checks its condition.
  bool wait_until(Mutex& mutex, Deadline deadline) RAGFS_REQUIRES(mutex);
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace ragfs
