// AsyncLocks: path locks that are awaited.
//
// A lock that is free is granted at once; who must wait is kept in a list that one thread of the client tries again
// whenever a lock is released, so waiting takes no thread of the caller's executor (which the release may need). What
// is granted after the waiter was cancelled is released. Not for: granting (LockBook).
// Bounds: kMaxWaiters. Thread-safety: acquire() needs the GIL; stop() must be called without it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "python/bind.h"
#include "python/lock_book.h"

namespace ragfs::python {

class AsyncLocks {
 public:
  static constexpr size_t kMaxWaiters = 16'384;

  ~AsyncLocks();

  // A future of the running loop. Errors: RuntimeError `no running event loop`.
  py::object acquire(const std::shared_ptr<BoundClient>& client, std::vector<LockRequest> requests, int64_t timeout_ms,
                     const std::string& owner_lease);
  // Ends the thread; who waits hears nothing any more.
  void stop();

 private:
  struct Waiter {
    std::vector<LockRequest> requests;
    std::string owner_lease;
    int64_t timeout_ms = 0;
    Deadline deadline;
    PyObject* loop = nullptr;    // owned; touched with the GIL only
    PyObject* future = nullptr;  // owned; touched with the GIL only
  };

  void start(const std::shared_ptr<BoundClient>& client);
  void run(BoundClient& client);
  // Tries each waiter once, in the order of arrival; the earliest deadline of those that go on waiting.
  Deadline try_all(BoundClient& client);
  static void settle(BoundClient& bound, const std::weak_ptr<BoundClient>& weak, Waiter& waiter,
                     Result<LeaseRef> result);

  Mutex mutex_;
  std::list<Waiter> waiters_ RAGFS_GUARDED_BY(mutex_);
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  std::weak_ptr<BoundClient> client_;
  LockBook* book_ = nullptr;
  std::thread thread_;
  int owner_pid_ = 0;  // a forked child has no thread
};

}  // namespace ragfs::python
