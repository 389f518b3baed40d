// PrefetchLane: the threads that read ahead, the tasks that wait for them, and what they may spend.
//
// Best effort: a task that finds no place is dropped, and counted where its owner counts. When the queue is full, the
// oldest task of a lower priority makes room; low priority goes first. An owner is a mount, known by its counters; it
// calls stop() before it goes. Threads are started by the first task and run at a lower priority of the system, so that
// readers do not wait for a processor.
//
// It gives way. What is read ahead beside readers who ask as fast as they can costs them more than it saves: memory and
// locks that they wait for, and the wake-up of a thread, which a miss would pay for. So:
// - One idle thread watches how often readers ask (their hits and misses, each kTickNs, over kWindowNs) for as long as
//   there were occasions lately. No task begins before a window was seen, or while its rate is above
//   busy_reads_per_second; busy() tells readers to pass their occasions over. Tasks that waited for kGiveUpNs of that
//   are dropped, but for those of Priority::warm.
// - submit() wakes nobody while that thread watches: it looks at the queue at its next tick.
// Bounds: PrefetchConfig. Not for: anything that somebody waits for (ReadLane).
// Thread-safety: all methods may be called from any thread. No lock is held while a task runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/cache_counters.h"
#include "ragfs/cache/prefetch_budget.h"
#include "ragfs/cache/prefetch_config.h"

namespace ragfs {

// `warm`: asked for by a person or at the start, not by an occasion; as low as `low`, but never given up for readers.
enum class PrefetchPriority : uint8_t { warm, low, normal, high };
inline constexpr size_t kPrefetchPriorities = 4;

class PrefetchLane {
 public:
  // `config` must be valid. `clock` is that of the bytes per second, `pace` that of the readers' rate.
  PrefetchLane(const PrefetchConfig& config, const Clock& clock, const Clock& pace = Clock::system())
      : config_(config), budget_(config.bytes_per_second, clock), pace_(pace) {}
  // Drops what waits and waits for what runs. All owners have called stop().
  ~PrefetchLane();
  PrefetchLane(const PrefetchLane&) = delete;
  PrefetchLane& operator=(const PrefetchLane&) = delete;

  // Takes the task, or drops it and counts that. `task` must not throw.
  void submit(CacheCounters& owner, PrefetchPriority priority, std::function<void()> task);
  // Asked by a task between two objects: it may read the next one. Counts a drop when the bytes are spent.
  bool goes_on(CacheCounters& owner);
  void spend(uint64_t bytes) { budget_.spend(bytes); }
  // Readers ask more often than it may disturb: an occasion is better passed over. One relaxed load.
  bool busy() const noexcept { return busy_.load(std::memory_order_relaxed); }

  // Drops the owner's tasks, takes no more of them, and waits for those that run. False when some still run at the
  // deadline.
  bool stop(CacheCounters& owner, Deadline deadline);
  // The owner goes; stop() has returned true.
  void forget(const CacheCounters& owner);

  // Waits until nothing waits and nothing runs; false at the deadline. For tests, benchmarks and `cache warm`.
  bool wait_until_idle(Deadline deadline);
  size_t queued() const;
  // No thread looks at anything until the next task comes. For tests.
  bool dozes() const;

  // In a child of fork(), where the threads are not.
  void let_go_in_child() noexcept { in_child_.store(true); }

  const PrefetchConfig& config() const { return config_; }

 private:
  struct Task {
    CacheCounters* owner = nullptr;
    std::function<void()> run;
  };
  // What of an owner runs, and whether it takes part no more.
  struct Owner {
    size_t running = 0;
    bool stopped = false;
  };

  static constexpr int64_t kTickNs = 1'000'000;
  static constexpr int64_t kWindowNs = 5 * kTickNs;
  static constexpr int64_t kFreshNs = 20 * kTickNs;  // how long a window tells something
  static constexpr int64_t kGiveUpNs = 100 * kTickNs;
  static constexpr int64_t kDozeNs = 100 * kTickNs;  // after the last occasion

  bool paces() const { return config_.busy_reads_per_second != 0; }
  // A task may begin now.
  bool may_begin() const RAGFS_REQUIRES(mutex_);
  // Nothing waits, readers are not known to be busy, and the last occasion was long ago: nobody has to watch.
  bool may_doze() const RAGFS_REQUIRES(mutex_);
  // Looks at the readers' rate when a window is over.
  void look() RAGFS_REQUIRES(mutex_);
  void give_up() RAGFS_REQUIRES(mutex_);
  uint64_t reads() const RAGFS_REQUIRES(mutex_);
  Task take() RAGFS_REQUIRES(mutex_);
  // Makes room for a task of `priority` at the expense of a lower one.
  bool make_room(PrefetchPriority priority) RAGFS_REQUIRES(mutex_);
  size_t waiting() const RAGFS_REQUIRES(mutex_);
  void start_thread() RAGFS_REQUIRES(mutex_);
  // One task after `done` (whose owner's; nullptr = none yet). Empty when the lane ends.
  Task next(CacheCounters* done);
  void run();

  const PrefetchConfig config_;
  PrefetchBudget budget_;
  const Clock& pace_;
  std::atomic<bool> in_child_{false};
  std::atomic<bool> busy_{false};
  mutable Mutex mutex_;
  CondVar wanted_;
  CondVar ended_;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  bool watched_ RAGFS_GUARDED_BY(mutex_) = false;   // a thread waits for the next tick
  int64_t asked_ns_ RAGFS_GUARDED_BY(mutex_) = 0;   // the last occasion
  int64_t window_ns_ RAGFS_GUARDED_BY(mutex_) = 0;  // the window's begin, and how much had been read by then
  uint64_t window_reads_ RAGFS_GUARDED_BY(mutex_) = 0;
  int64_t seen_ns_ RAGFS_GUARDED_BY(mutex_) = -kFreshNs;  // the last window's end
  int64_t quiet_ns_ RAGFS_GUARDED_BY(mutex_) = 0;         // the end of the last one that was not busy
  size_t idle_ RAGFS_GUARDED_BY(mutex_) = 0;
  size_t running_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::array<std::deque<Task>, kPrefetchPriorities> queues_ RAGFS_GUARDED_BY(mutex_);
  std::map<const CacheCounters*, Owner> owners_ RAGFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
