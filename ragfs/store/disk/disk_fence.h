// DiskFence: decides whether a failing disk directory is given up, and keeps that decision.
//
// A failing call is reported with its op and errno; the thread that saw it goes on at once: report() makes no system
// call and takes only the fence's own lock, for a few instructions. Some errnos fence at once, most are ignored, and
// some ask for a check: `fstat` on a descriptor of the directory held since the start (its path where that could not be
// opened), after `syncfs` when a write-kind call failed. Only fstat's errno decides. On XFS the first EIO of a dead
// device comes before the file system shuts down; syncfs makes the log write that shuts it down, and fstat then sees
// EIO; one bad block of a healthy disk fails syncfs once, and fstat goes on succeeding.
//
//   healthy --report(fence_now)-------------------------------> fenced, for the life of the process
//      |  ^--- check passed (logged) ---.                          ^
//      '--report(check)--> checking ----+--- fstat failed ---------'
//                             ^  | (meanwhile: counted, one more check queued)
//                             '--'
//
// The check runs on a thread of its own, where it can hang alone. Only syncfs is rate limited, with one trailing run.
// Not for: the effects of a fence (StoreNode has them, on its control thread): `on_fence` is called once, and wakes it.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "ragfs/base/clock.h"
#include "ragfs/base/file_io.h"
#include "ragfs/base/sync.h"
#include "ragfs/store/disk/disk_op.h"

namespace ragfs {

// Writes one line for the operator. Called by background threads, under no lock.
using StoreLog = std::function<void(std::string_view line)>;

struct FenceReason {
  std::string reason;  // "errno" or "check"; "" = not fenced
  DiskOp op = DiskOp::open;
  int sys_errno = 0;
};

struct FenceStats {
  std::array<uint64_t, kDiskOpCount> failures{};  // by op
  uint64_t checks = 0;
  uint64_t check_ns = 0;
  uint64_t syncfs_calls = 0;
  uint64_t syncfs_deferred = 0;  // held back by the rate limit
  uint64_t checks_skipped = 0;   // failures that follow a running check
  uint64_t checks_passed = 0;    // not fenced
  int64_t fenced_after_ns = 0;   // from the first failing call since the last check that passed; 0 = not fenced
};

class DiskFence {
 public:
  struct Config {
    std::string directory;
    int64_t syncfs_interval_ms = 10'000;
    const Clock* clock = &Clock::system();
    StoreLog log;
    std::function<void()> on_fence;  // must not block
  };

  // Opens the directory's descriptor; where that fails, checks go by its path.
  DiskFence(PosixFiles& files, Config config);
  // Waits for a running check: a hung one is waited for until it returns.
  ~DiskFence();
  DiskFence(const DiskFence&) = delete;
  DiskFence& operator=(const DiskFence&) = delete;

  bool fenced() const noexcept { return fenced_.load(std::memory_order_acquire); }
  // A call on the directory failed. `path` is for the log. Errnos of the ignored class are counted only.
  void report(DiskOp op, int sys_errno, std::string_view path);
  // Gives the directory up by decision of an operator or a probe. Idempotent.
  void fence(std::string_view reason, DiskOp op, int sys_errno);
  // When the running check began on the clock's monotonic time; 0 = none runs. For the watchdog.
  int64_t check_began_ns() const noexcept { return check_began_ns_.load(std::memory_order_relaxed); }
  // Waits until no check runs or is due (a deferred syncfs does not count); false when the deadline came first.
  bool wait_idle(Deadline deadline);
  // Closes the descriptor, so that a dead file system can be unmounted and replaced. After a fence only.
  void release_handle();

  FenceReason reason() const;
  FenceStats stats() const;
  const std::string& directory() const { return config_.directory; }

 private:
  struct Pending {
    bool due = false;
    bool write_kind = false;
    DiskOp op = DiskOp::open;
    int sys_errno = 0;
    std::string path;
  };

  void run();
  void check(const Pending& pending);
  int ask_file_system();
  bool may_sync_now(const Pending& pending) RAGFS_EXCLUDES(mutex_);
  void log(std::string line) const;

  PosixFiles& files_;
  const Config config_;
  std::atomic<bool> fenced_{false};
  std::atomic<int64_t> check_began_ns_{0};
  mutable Mutex mutex_;
  CondVar changed_;
  OwnedFd handle_ RAGFS_GUARDED_BY(mutex_);
  Pending pending_ RAGFS_GUARDED_BY(mutex_);
  uint64_t extra_checks_ RAGFS_GUARDED_BY(mutex_) = 0;  // with the single-check rule taken out
  bool checking_ RAGFS_GUARDED_BY(mutex_) = false;
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  int64_t next_sync_ns_ RAGFS_GUARDED_BY(mutex_) = 0;
  Pending owed_ RAGFS_GUARDED_BY(mutex_);                  // whose syncfs was held back
  int64_t first_failure_ns_ RAGFS_GUARDED_BY(mutex_) = 0;  // since the last check that passed
  FenceReason reason_ RAGFS_GUARDED_BY(mutex_);
  FenceStats stats_ RAGFS_GUARDED_BY(mutex_);
  int64_t next_log_ns_ = 0;  // of the checking thread
  std::thread checker_;
};

}  // namespace ragfs
