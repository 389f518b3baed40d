#include "ragfs/store/disk/read_pool.h"

#include <utility>

namespace ragfs {

ReadPool::ReadPool(size_t threads, size_t most_queued) : most_queued_(most_queued) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

ReadPool::~ReadPool() { stop(); }

ReadPool::Outcome ReadPool::run(std::function<void()> job, Deadline deadline) {
  auto mine = std::make_shared<Job>();
  mine->work = std::move(job);
  {
    const MutexLock lock(mutex_);
    if (stopping_) return Outcome::stopped;
    if (queue_.size() >= most_queued_) return Outcome::full;
    queue_.push_back(mine);
    changed_.notify_one();
  }
  const MutexLock lock(mine->mutex);
  while (!mine->done) {
    if (!mine->changed.wait_until(mine->mutex, deadline) && !mine->done) return Outcome::timed_out;
  }
  return mine->dropped ? Outcome::stopped : Outcome::done;
}

void ReadPool::finish(Job& job, bool dropped) {
  const MutexLock lock(job.mutex);
  job.done = true;
  job.dropped = dropped;
  job.changed.notify_all();
}

void ReadPool::work() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && queue_.empty()) changed_.wait_until(mutex_, Deadline::never());
      if (stopping_) return;
      job = std::move(queue_.front());
      queue_.pop_front();
    }
    job->work();
    job->work = nullptr;
    finish(*job, false);
  }
}

void ReadPool::stop() {
  std::deque<std::shared_ptr<Job>> left;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    left.swap(queue_);
    changed_.notify_all();
  }
  for (const auto& job : left) finish(*job, true);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace ragfs
