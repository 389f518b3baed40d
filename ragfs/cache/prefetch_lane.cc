#include "ragfs/cache/prefetch_lane.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace ragfs {

Result<void> PrefetchConfig::validate() const {
  const auto in_range = [](std::string_view field, uint64_t value, uint64_t least, uint64_t most) -> Result<void> {
    if (value >= least && value <= most) return {};
    return fail(ErrorCode::config,
                fmt::format("prefetch.{}: {} is not allowed; it must be {} to {}", field, value, least, most));
  };
  if (auto ok = in_range("concurrency", concurrency, 1, 64); !ok) return ok;
  if (auto ok = in_range("max_queued", max_queued, 1, 65'536); !ok) return ok;
  if (auto ok = in_range("max_objects", max_objects, 4, 16); !ok) return ok;
  if (auto ok = in_range("cooldown_ms", static_cast<uint64_t>(cooldown_ms), 1, 10'000); !ok) return ok;
  return in_range("bytes_per_second", bytes_per_second, 4'096, uint64_t{1} << 40);
}

PrefetchLane::~PrefetchLane() {
  if (in_child_.load()) {
    // There are no threads to be waited for, and the lock may stand locked.
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stop_ = true;
    wanted_.notify_all();
    threads = std::move(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

size_t PrefetchLane::waiting() const {
  size_t sum = 0;
  for (const auto& queue : queues_) sum += queue.size();
  return sum;
}

size_t PrefetchLane::queued() const {
  MutexLock lock(mutex_);
  return waiting();
}

bool PrefetchLane::make_room(PrefetchPriority priority) {
  for (size_t lower = 0; lower < static_cast<size_t>(priority); ++lower) {
    if (queues_[lower].empty()) continue;
    queues_[lower].front().owner->add(CacheCounter::prefetch_dropped);
    queues_[lower].pop_front();
    return true;
  }
  return false;
}

void PrefetchLane::start_thread() {
  if (idle_ >= waiting() || threads_.size() >= config_.concurrency) return;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    // No thread is to be had now: the task waits for one, or is dropped when the queue is full.
  }
}

void PrefetchLane::submit(CacheCounters& owner, PrefetchPriority priority, std::function<void()> task) {
  if (in_child_.load()) return;
  std::function<void()> refused;  // destroyed after the lock
  MutexLock lock(mutex_);
  const bool taken = !stop_ && !owners_[&owner].stopped && (waiting() < config_.max_queued || make_room(priority));
  if (!taken) {
    owner.add(CacheCounter::prefetch_dropped);
    refused = std::move(task);
    return;
  }
  queues_[static_cast<size_t>(priority)].push_back({&owner, std::move(task)});
  start_thread();
  wanted_.notify_one();
}

bool PrefetchLane::goes_on(CacheCounters& owner) {
  {
    MutexLock lock(mutex_);
    if (stop_ || owners_[&owner].stopped) return false;
  }
  if (budget_.affords()) return true;
  owner.add(CacheCounter::prefetch_dropped);
  return false;
}

bool PrefetchLane::stop(CacheCounters& owner, Deadline deadline) {
  if (in_child_.load()) return true;
  std::vector<Task> dropped;  // destroyed after the lock
  MutexLock lock(mutex_);
  owners_[&owner].stopped = true;
  for (auto& queue : queues_) {
    std::deque<Task> kept;
    for (Task& task : queue) {
      if (task.owner == &owner) {
        owner.add(CacheCounter::prefetch_dropped);
        dropped.push_back(std::move(task));
      } else {
        kept.push_back(std::move(task));
      }
    }
    queue = std::move(kept);
  }
  while (owners_[&owner].running > 0) {
    if (!ended_.wait_until(mutex_, deadline)) return owners_[&owner].running == 0;
  }
  return true;
}

void PrefetchLane::forget(const CacheCounters& owner) {
  if (in_child_.load()) return;
  MutexLock lock(mutex_);
  owners_.erase(&owner);
}

bool PrefetchLane::wait_until_idle(Deadline deadline) {
  MutexLock lock(mutex_);
  while (running_ > 0 || waiting() > 0) {
    if (!ended_.wait_until(mutex_, deadline)) return running_ == 0 && waiting() == 0;
  }
  return true;
}

PrefetchLane::Task PrefetchLane::next(CacheCounters* done) {
  MutexLock lock(mutex_);
  if (done != nullptr) {
    --running_;
    --owners_[done].running;
    ended_.notify_all();
  }
  while (waiting() == 0 && !stop_) {
    ++idle_;
    wanted_.wait_until(mutex_, Deadline::never());
    --idle_;
  }
  if (stop_) return {};
  for (size_t priority = kPrefetchPriorities; priority-- > 0;) {
    if (queues_[priority].empty()) continue;
    Task task = std::move(queues_[priority].front());
    queues_[priority].pop_front();
    ++running_;
    ++owners_[task.owner].running;
    return task;
  }
  return {};
}

void PrefetchLane::run() {
  // Of this thread alone; where it is not allowed, it runs as all others.
  constexpr int kNicer = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNicer);
  CacheCounters* done = nullptr;
  while (true) {
    const Task task = next(done);
    if (!task.run) return;
    task.run();
    done = task.owner;
  }
}

}  // namespace ragfs
