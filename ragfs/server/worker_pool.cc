#include "ragfs/server/worker_pool.h"

namespace ragfs::server {

WorkerPool::WorkerPool(size_t threads, size_t queue_limit) : thread_count_(threads), queue_limit_(queue_limit) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::submit(Job&& job) { return submit_within(queue_limit_, std::move(job)); }

bool WorkerPool::submit_always(Job&& job) { return submit_within(SIZE_MAX, std::move(job)); }

bool WorkerPool::submit_within(size_t limit, Job&& job) {
  bool wake = false;
  {
    const MutexLock lock(mutex_);
    if (stopping_ || queue_.size() >= limit) {
      ++refused_;
      return false;
    }
    queue_.push_back(std::move(job));
    wake = idle_ > 0;
  }
  if (wake) wake_.notify_one();
  return true;
}

void WorkerPool::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkerPool::run() {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_) {
        ++idle_;
        wake_.wait_until(mutex_, Deadline::never());
        --idle_;
      }
      if (queue_.empty()) return;
      job = std::move(queue_.front());
      queue_.pop_front();
      ++busy_;
    }
    job();
    const MutexLock lock(mutex_);
    --busy_;
  }
}

size_t WorkerPool::queued() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

size_t WorkerPool::busy() const {
  const MutexLock lock(mutex_);
  return busy_;
}

uint64_t WorkerPool::refused() const {
  const MutexLock lock(mutex_);
  return refused_;
}

}  // namespace ragfs::server
