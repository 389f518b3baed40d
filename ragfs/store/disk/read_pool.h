// ReadPool: threads that read from a disk, so that no reader waits longer than his deadline, however the disk hangs.
//
// A reader hands a job in and waits; when his deadline passes he leaves, and the job keeps what it needs until its call
// returns. So a hung disk holds the pool's threads and nobody else. The queue is bounded: a full one answers at once.
// Not for: writes. Thread-safety: all methods may be called from any thread; stop() once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/sync.h"

namespace ragfs {

class ReadPool {
 public:
  ReadPool(size_t threads, size_t most_queued);
  ~ReadPool();
  ReadPool(const ReadPool&) = delete;
  ReadPool& operator=(const ReadPool&) = delete;

  enum class Outcome : uint8_t { done, timed_out, full, stopped };
  // Runs `job` on a thread of the pool. Unless `done` is answered it may run later, or never.
  Outcome run(std::function<void()> job, Deadline deadline);
  // Ends the threads after the job they are at; what is queued does not run.
  void stop();

 private:
  struct Job {
    std::function<void()> work;
    Mutex mutex;
    CondVar changed;
    bool done RAGFS_GUARDED_BY(mutex) = false;
    bool dropped RAGFS_GUARDED_BY(mutex) = false;
  };
  static void finish(Job& job, bool dropped);
  void work();

  const size_t most_queued_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<Job>> queue_ RAGFS_GUARDED_BY(mutex_);
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ragfs
