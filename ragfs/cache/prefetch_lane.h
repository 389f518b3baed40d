// PrefetchLane: the threads that read ahead, the tasks that wait for them, and what they may spend.
//
// Best effort: a task that finds no place is dropped, and counted where its owner counts. When the queue is full, the
// oldest task of a lower priority makes room; low priority goes first. An owner is a mount, known by its counters; it
// calls stop() before it goes. Threads are started by the first task and run at a lower priority of the system, so that
// readers do not wait for a processor.
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

enum class PrefetchPriority : uint8_t { low, normal, high };
inline constexpr size_t kPrefetchPriorities = 3;

class PrefetchLane {
 public:
  // `config` must be valid.
  PrefetchLane(const PrefetchConfig& config, const Clock& clock)
      : config_(config), budget_(config.bytes_per_second, clock) {}
  // Drops what waits and waits for what runs. All owners have called stop().
  ~PrefetchLane();
  PrefetchLane(const PrefetchLane&) = delete;
  PrefetchLane& operator=(const PrefetchLane&) = delete;

  // Takes the task, or drops it and counts that. `task` must not throw.
  void submit(CacheCounters& owner, PrefetchPriority priority, std::function<void()> task);
  // Asked by a task between two objects: it may read the next one. Counts a drop when the bytes are spent.
  bool goes_on(CacheCounters& owner);
  void spend(uint64_t bytes) { budget_.spend(bytes); }

  // Drops the owner's tasks, takes no more of them, and waits for those that run. False when some still run at the
  // deadline.
  bool stop(CacheCounters& owner, Deadline deadline);
  // The owner goes; stop() has returned true.
  void forget(const CacheCounters& owner);

  // Waits until nothing waits and nothing runs; false at the deadline. For tests, benchmarks and `cache warm`.
  bool wait_until_idle(Deadline deadline);
  size_t queued() const;

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

  // Makes room for a task of `priority` at the expense of a lower one.
  bool make_room(PrefetchPriority priority) RAGFS_REQUIRES(mutex_);
  size_t waiting() const RAGFS_REQUIRES(mutex_);
  void start_thread() RAGFS_REQUIRES(mutex_);
  // One task after `done` (whose owner's; nullptr = none yet). Empty when the lane ends.
  Task next(CacheCounters* done);
  void run();

  const PrefetchConfig config_;
  PrefetchBudget budget_;
  std::atomic<bool> in_child_{false};
  mutable Mutex mutex_;
  CondVar wanted_;
  CondVar ended_;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  size_t idle_ RAGFS_GUARDED_BY(mutex_) = 0;
  size_t running_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::array<std::deque<Task>, kPrefetchPriorities> queues_ RAGFS_GUARDED_BY(mutex_);
  std::map<const CacheCounters*, Owner> owners_ RAGFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
