#include "python/async_locks.h"

#include <unistd.h>

#include <set>
#include <utility>

namespace ragfs::python {
namespace {

constexpr int64_t kLookAgain_ms = 1'000;
constexpr int64_t kLookAtFiles_ms = 100;

// Every client's AsyncLocks, so that their threads can be ended before the interpreter goes.
struct Registry {
  Mutex mutex;
  std::set<AsyncLocks*> all RAGFS_GUARDED_BY(mutex);
};
Registry& registry() {
  static Registry all;
  return all;
}

Raised raised_of(const Error& error) {
  if (error.code == ErrorCode::invalid_argument) return {"ValueError", "invalid lock request: " + error.message};
  return raised(error, "", Call::other);
}

// Runs on the loop: the waiter may have been cancelled meanwhile, then nobody will ever release what it was given.
void deliver(const std::weak_ptr<BoundClient>& weak, const py::object& future, const Result<LeaseRef>& result) {
  const bool done = future.attr("done")().cast<bool>();
  if (result && done) {
    if (const auto client = weak.lock()) {
      (void)client->client->locks().release(result->lease_ref, result->ownership_ref);
    }
    return;
  }
  if (done) return;
  if (result) {
    future.attr("set_result")(lease_dict(*result, true));
    return;
  }
  try {
    throw_raised(raised_of(result.error()));
  } catch (py::error_already_set& error) {
    future.attr("set_exception")(error.value());
  }
}

}  // namespace

std::shared_ptr<AsyncLocks> make_async_locks() {
  auto locks = std::make_shared<AsyncLocks>();
  const MutexLock lock(registry().mutex);
  registry().all.insert(locks.get());
  return locks;
}

void stop_async_locks() {
  std::vector<AsyncLocks*> all;
  {
    const MutexLock lock(registry().mutex);
    all.assign(registry().all.begin(), registry().all.end());
  }
  for (AsyncLocks* locks : all) locks->stop();
}

AsyncLocks::~AsyncLocks() {
  {
    const MutexLock lock(registry().mutex);
    registry().all.erase(this);
  }
  const py::gil_scoped_release release;
  stop();
}

void AsyncLocks::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  if (!thread_.joinable()) return;
  if (owner_pid_ != ::getpid()) {
    thread_.detach();  // it belongs to the parent of this process
    return;
  }
  book_->wake();
  thread_.join();
}

void AsyncLocks::start(const std::shared_ptr<BoundClient>& client) {
  if (thread_.joinable() && owner_pid_ == ::getpid()) return;
  if (thread_.joinable()) thread_.detach();
  owner_pid_ = ::getpid();
  client_ = client;
  book_ = &client->client->locks();
  // The client outlives the thread: its destructor joins it.
  thread_ = std::thread([this, bound = client.get()] { run(*bound); });
}

py::object AsyncLocks::acquire(const std::shared_ptr<BoundClient>& client, std::vector<LockRequest> requests,
                               int64_t timeout_ms, const std::string& owner_lease) {
  const py::object loop = py::module_::import("asyncio").attr("get_running_loop")();
  const py::object future = loop.attr("create_future")();
  LockBook& book = client->client->locks();
  if (!book.keeps_files()) {
    auto granted = book.try_acquire(requests, owner_lease);
    if (!granted) {
      deliver(client, future, std::unexpected(granted.error()));
      return future;
    }
    if (*granted) {
      deliver(client, future, **granted);
      return future;
    }
    if (timeout_ms == 0) {
      deliver(client, future, std::unexpected(book.give_up(requests, 0)));
      return future;
    }
  }
  start(client);
  bool full = false;
  {
    const MutexLock lock(mutex_);
    full = waiters_.size() >= kMaxWaiters;
    if (!full) {
      waiters_.push_back({std::move(requests), owner_lease, timeout_ms, Deadline::in_ms(timeout_ms),
                          loop.inc_ref().ptr(), future.inc_ref().ptr()});
    }
  }
  if (full) {
    deliver(client, future, fail(ErrorCode::would_block, "too many requests wait for path locks"));
  }
  book.wake();
  return future;
}

// `bound` is the client of `weak`. The thread keeps no reference to it: were it the last, the thread would join itself.
void AsyncLocks::settle(BoundClient& bound, const std::weak_ptr<BoundClient>& weak, Waiter& waiter,
                        Result<LeaseRef> result) {
  const py::gil_scoped_acquire gil;
  const auto loop = py::reinterpret_steal<py::object>(waiter.loop);
  const auto future = py::reinterpret_steal<py::object>(waiter.future);
  try {
    loop.attr("call_soon_threadsafe")(py::cpp_function([weak, future, result] { deliver(weak, future, result); }));
  } catch (py::error_already_set&) {
    // The loop is closed: nobody waits.
    if (result) (void)bound.client->locks().release(result->lease_ref, result->ownership_ref);
  }
}

Deadline AsyncLocks::try_all(BoundClient& client) {
  LockBook& book = client.client->locks();
  std::list<Waiter> settled;
  std::vector<Result<LeaseRef>> results;
  Deadline earliest;
  std::list<Waiter> waiters;
  {
    const MutexLock lock(mutex_);
    waiters.swap(waiters_);
  }
  {
    for (auto at = waiters.begin(); at != waiters.end();) {
      const auto waiter = at++;
      Result<std::optional<LeaseRef>> granted = book.try_acquire(waiter->requests, waiter->owner_lease);
      if (granted && !*granted && !waiter->deadline.expired()) {
        earliest = Deadline::earlier(earliest, waiter->deadline);
        continue;
      }
      if (!granted) {
        results.emplace_back(std::unexpected(std::move(granted.error())));
      } else if (*granted) {
        results.emplace_back(std::move(**granted));
      } else {
        results.emplace_back(std::unexpected(book.give_up(waiter->requests, waiter->timeout_ms)));
      }
      settled.splice(settled.end(), waiters, waiter);
    }
  }
  {
    // Before those who came meanwhile.
    const MutexLock lock(mutex_);
    waiters_.splice(waiters_.begin(), waiters);
  }
  size_t next = 0;
  for (Waiter& waiter : settled) settle(client, client_, waiter, std::move(results[next++]));
  return earliest;
}

void AsyncLocks::run(BoundClient& client) {
  LockBook& book = client.client->locks();
  // A lease in the way may run out, and another process may let go, without anybody telling.
  const int64_t look_again_ms = book.keeps_files() ? kLookAtFiles_ms : kLookAgain_ms;
  while (true) {
    const uint64_t seen = book.changes();
    const Deadline next = try_all(client);
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    book.wait_for_change(seen, Deadline::earlier(next, Deadline::in_ms(look_again_ms)));
  }
}

}  // namespace ragfs::python
