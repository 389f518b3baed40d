// ReadLane: a few threads that help with what one call has to ask the backends for.
//
// A batch whose answers are not cached is read by its caller and by the lane's threads side by side, so a batch costs
// the backend at most `width` reads at once and a caller never waits for work that nobody has begun: what no helper is
// free for it does itself. Threads are started by the first batch that wants them.
// Bounds: width - 1 threads, kMostTickets requests for help.
// Not for: work that outlives its call (prefetch has threads of its own).
// Thread-safety: all methods may be called from any thread. No lock is held while work runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"

namespace ragfs {

class ReadLane {
 public:
  // `width`: most pieces of one batch that run at once, the caller's own included; at least 1.
  explicit ReadLane(size_t width) : width_(width) {}
  // Ends the threads. No batch may be running.
  ~ReadLane();
  ReadLane(const ReadLane&) = delete;
  ReadLane& operator=(const ReadLane&) = delete;

  // Calls work(0) to work(count - 1), each once, in no order; returns when all have returned. `work` must not throw.
  void for_each(size_t count, const std::function<void(size_t)>& work);

  // In a child of fork(), where the threads are not.
  void let_go_in_child() noexcept { in_child_.store(true); }

 private:
  static constexpr size_t kMostTickets = 1024;
  struct Batch {
    const std::function<void(size_t)>* work = nullptr;
    size_t count = 0;
    std::atomic<size_t> next{0};
    size_t helpers = 0;  // guarded by the lane's mutex
    void take_pieces() {
      for (size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*work)(i);
    }
  };

  void ask_for_help(const std::shared_ptr<Batch>& batch, size_t helpers) RAGFS_REQUIRES(mutex_);
  // One piece of work after `done` (nullptr = none yet); nullptr when the lane ends.
  std::shared_ptr<Batch> next_batch(const std::shared_ptr<Batch>& done);
  void run();

  const size_t width_;
  std::atomic<bool> in_child_{false};
  Mutex mutex_;
  CondVar wanted_;
  CondVar helped_;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  size_t idle_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<Batch>> tickets_ RAGFS_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
