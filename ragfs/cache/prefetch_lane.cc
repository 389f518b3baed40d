#include "ragfs/cache/prefetch_lane.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
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
  if (auto ok = in_range("busy_reads_per_second", busy_reads_per_second, 0, 1'000'000'000); !ok) return ok;
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

bool PrefetchLane::dozes() const {
  MutexLock lock(mutex_);
  return !watched_ && running_ == 0 && idle_ == threads_.size();
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
  if (paces()) asked_ns_ = pace_.monotonic_ns();
  start_thread();
  if (!watched_) wanted_.notify_one();
}

// --- how it gives way ---

uint64_t PrefetchLane::reads() const {
  uint64_t sum = 0;
  for (const auto& [counters, owner] : owners_) {
    for (const CacheCounter counter :
         {CacheCounter::file_hit, CacheCounter::file_miss, CacheCounter::directory_hit, CacheCounter::directory_miss}) {
      sum += counters->read(counter);
    }
  }
  return sum;
}

bool PrefetchLane::may_begin() const {
  if (!paces()) return true;
  return !busy() && pace_.monotonic_ns() - seen_ns_ <= kFreshNs;
}

bool PrefetchLane::may_doze() const {
  return waiting() == 0 && (!paces() || (!busy() && pace_.monotonic_ns() - asked_ns_ > kDozeNs));
}

void PrefetchLane::look() {
  const int64_t now_ns = pace_.monotonic_ns();
  const int64_t window_ns = now_ns - window_ns_;
  if (window_ns < kWindowNs) return;
  const uint64_t all = reads();
  const uint64_t in_window = all - std::min(all, window_reads_);  // a mount may have gone
  window_ns_ = now_ns;
  window_reads_ = all;
  if (window_ns > kFreshNs) {  // nobody watched: it begins here
    quiet_ns_ = now_ns;
    return;
  }
  constexpr double kNsPerSecond = 1e9;
  const double rate = static_cast<double>(in_window) * kNsPerSecond / static_cast<double>(window_ns);
  const bool busy = rate > static_cast<double>(config_.busy_reads_per_second);
  busy_.store(busy, std::memory_order_relaxed);
  seen_ns_ = now_ns;
  if (!busy) quiet_ns_ = now_ns;
  if (busy && now_ns - quiet_ns_ > kGiveUpNs) give_up();
}

void PrefetchLane::give_up() {
  for (size_t priority = static_cast<size_t>(PrefetchPriority::low); priority < kPrefetchPriorities; ++priority) {
    for (const Task& task : queues_[priority]) task.owner->add(CacheCounter::prefetch_dropped);
    queues_[priority].clear();
  }
  ended_.notify_all();
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
  while (!stop_) {
    if (waiting() > 0 && may_begin()) return take();
    const bool watches = !watched_ && !may_doze();
    ++idle_;
    watched_ |= watches;
    (void)wanted_.wait_until(mutex_, watches ? Deadline::in_ns(busy() ? kWindowNs : kTickNs) : Deadline::never());
    --idle_;
    if (!watches) continue;
    watched_ = false;
    look();
  }
  return {};
}

PrefetchLane::Task PrefetchLane::take() {
  if (idle_ > 0) wanted_.notify_one();  // for the next one, and to watch
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
