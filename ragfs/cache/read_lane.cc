#include "ragfs/cache/read_lane.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ragfs {

ReadLane::~ReadLane() {
  std::vector<std::thread> threads;
  if (in_child_.load()) {
    // There are none to be waited for, and the lock may stand locked.
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  {
    MutexLock lock(mutex_);
    stop_ = true;
    wanted_.notify_all();
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void ReadLane::ask_for_help(const std::shared_ptr<Batch>& batch, size_t helpers) {
  for (size_t i = 0; i < helpers && tickets_.size() < kMostTickets; ++i) tickets_.push_back(batch);
  for (size_t ready = idle_; ready < tickets_.size() && threads_.size() + 1 < width_; ++ready) {
    try {
      threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      break;  // no thread is to be had now: the caller does what is left
    }
  }
  wanted_.notify_all();
}

void ReadLane::for_each(size_t count, const std::function<void(size_t)>& work) {
  if (count <= 1 || width_ <= 1 || in_child_.load()) {
    for (size_t i = 0; i < count; ++i) work(i);
    return;
  }
  auto batch = std::make_shared<Batch>();
  batch->work = &work;
  batch->count = count;
  {
    MutexLock lock(mutex_);
    ask_for_help(batch, std::min(width_, count) - 1);
  }
  batch->take_pieces();
  MutexLock lock(mutex_);
  std::erase(tickets_, batch);
  while (batch->helpers > 0) helped_.wait_until(mutex_, Deadline::never());
}

std::shared_ptr<ReadLane::Batch> ReadLane::next_batch(const std::shared_ptr<Batch>& done) {
  MutexLock lock(mutex_);
  if (done != nullptr) {
    --done->helpers;
    helped_.notify_all();
  }
  while (tickets_.empty() && !stop_) {
    ++idle_;
    wanted_.wait_until(mutex_, Deadline::never());
    --idle_;
  }
  if (stop_) return nullptr;
  std::shared_ptr<Batch> batch = std::move(tickets_.front());
  tickets_.pop_front();
  ++batch->helpers;
  return batch;
}

void ReadLane::run() {
  std::shared_ptr<Batch> batch;
  while ((batch = next_batch(batch)) != nullptr) batch->take_pieces();
}

}  // namespace ragfs
