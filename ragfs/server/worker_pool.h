// WorkerPool: a fixed number of threads that do file work, with a bounded queue before them.
//
// For: keeping calls that may block off the threads that serve connections. Not for: anything that waits for a client.
// Thread-safety: all methods may be called from any thread; stop() once, by the owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"

namespace ragfs::server {

class WorkerPool {
 public:
  using Job = std::move_only_function<void()>;

  WorkerPool(size_t threads, size_t queue_limit);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full or the pool has stopped; the job was not taken then and is still the caller's.
  bool submit(Job&& job);
  // For what must be done and is bounded by other means: past the limit too. False after stop() alone.
  bool submit_always(Job&& job);
  // Runs what is queued, then ends the threads.
  void stop();

  size_t queued() const;
  size_t busy() const;
  size_t threads() const { return thread_count_; }
  uint64_t refused() const;

 private:
  bool submit_within(size_t limit, Job&& job);
  void run();

  const size_t thread_count_;
  const size_t queue_limit_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Job> queue_ RAGFS_GUARDED_BY(mutex_);
  size_t busy_ RAGFS_GUARDED_BY(mutex_) = 0;
  size_t idle_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t refused_ RAGFS_GUARDED_BY(mutex_) = 0;
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ragfs::server
