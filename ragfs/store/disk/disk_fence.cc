#include "ragfs/store/disk/disk_fence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {

namespace {
constexpr int64_t kLogInterval_ns = 1'000'000'000;  // between two lines on errors that did not fence
}

DiskFence::DiskFence(PosixFiles& files, Config config) : files_(files), config_(std::move(config)) {
  const int fd = retry_interrupted(
      [&] { return files_.openat(AT_FDCWD, config_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  {
    const MutexLock lock(mutex_);
    if (fd >= 0) handle_ = OwnedFd(files_, fd);
  }
  checker_ = std::thread([this] { run(); });
}

DiskFence::~DiskFence() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  checker_.join();
}

void DiskFence::report(DiskOp op, int sys_errno, std::string_view path) {
  const ErrnoClass kind = errno_class(sys_errno);
  if (kind != ErrnoClass::ignore) {
    const MutexLock lock(mutex_);
    if (first_failure_ns_ == 0) first_failure_ns_ = config_.clock->monotonic_ns();
  }
  if (kind == ErrnoClass::fence_now) fence("errno", op, sys_errno);
  const MutexLock lock(mutex_);
  ++stats_.failures[static_cast<size_t>(op)];
  if (kind != ErrnoClass::check || fenced()) return;
  if (checking_ && fence_rule(FenceRule::kSingleCheck)) ++stats_.checks_skipped;
  const bool write_kind = is_write_kind(op);
  if (pending_.due && !fence_rule(FenceRule::kSingleCheck)) ++extra_checks_;
  if (!pending_.due) {
    pending_ = {true, write_kind, op, sys_errno, std::string(path)};
  } else {
    pending_.write_kind |= write_kind;
  }
  changed_.notify_all();
}

void DiskFence::fence(std::string_view reason, DiskOp op, int sys_errno) {
  {
    const MutexLock lock(mutex_);
    if (fenced_.load(std::memory_order_relaxed)) return;
    reason_ = {std::string(reason), op, sys_errno};
    const int64_t now_ns = config_.clock->monotonic_ns();
    stats_.fenced_after_ns = std::max<int64_t>(now_ns - (first_failure_ns_ == 0 ? now_ns : first_failure_ns_), 1);
    fenced_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
  log(
      fmt::format("action=disk_fenced dir={} reason={} op={} errno={} - the disk tier of this directory is off until a "
                  "restart; memory goes on serving. Replace or repair the disk, then restart.",
                  config_.directory, reason, disk_op_name(op), errno_name(sys_errno)));
  if (config_.on_fence) config_.on_fence();
}

void DiskFence::run() {
  while (true) {
    Pending next;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && !pending_.due) {
        const Deadline until =
            owed_.due ? Deadline::in_ns(next_sync_ns_ - config_.clock->monotonic_ns()) : Deadline::never();
        changed_.wait_until(mutex_, until);
        // The trailing run: what the rate limit held back is made up for.
        if (owed_.due && !pending_.due && config_.clock->monotonic_ns() >= next_sync_ns_) pending_ = owed_;
      }
      if (stopping_) return;
      next = pending_;
      if (extra_checks_ > 0) {
        --extra_checks_;
      } else {
        pending_ = Pending{};
      }
      checking_ = true;
    }
    if (!fenced()) check(next);
    const MutexLock lock(mutex_);
    checking_ = false;
    changed_.notify_all();
  }
}

bool DiskFence::may_sync_now(const Pending& pending) {
  const MutexLock lock(mutex_);
  const int64_t now = config_.clock->monotonic_ns();
  if (now < next_sync_ns_ && fence_rule(FenceRule::kSyncRateLimit)) {
    ++stats_.syncfs_deferred;
    owed_ = pending;
    owed_.due = true;
    return false;
  }
  next_sync_ns_ = now + config_.syncfs_interval_ms * 1'000'000;
  owed_ = Pending{};
  ++stats_.syncfs_calls;
  return handle_.get() >= 0;
}

int DiskFence::ask_file_system() {
  int fd = -1;
  {
    const MutexLock lock(mutex_);
    fd = handle_.get();
  }
  struct stat unused;
  if (fd >= 0) return -files_.fstat(fd, &unused);
  if (!fence_rule(FenceRule::kStatWithoutHandle)) return EBADF;
  return -files_.fstatat(AT_FDCWD, config_.directory.c_str(), &unused, 0);
}

void DiskFence::check(const Pending& pending) {
  const int64_t began = config_.clock->monotonic_ns();
  check_began_ns_.store(began, std::memory_order_relaxed);
  RAGFS_PAUSE_POINT("fence.check");
  const bool wants_sync = (pending.write_kind && fence_rule(FenceRule::kSyncOnWriteKind)) ||
                          (!pending.write_kind && !fence_rule(FenceRule::kNoSyncOnReadKind));
  int sync_errno = 0;
  bool synced = false;
  if (wants_sync && may_sync_now(pending)) {
    int fd = -1;
    {
      const MutexLock lock(mutex_);
      fd = handle_.get();
    }
    sync_errno = -files_.syncfs(fd);
    synced = true;
  }
  const int found = ask_file_system();
  const bool dead =
      errno_class(found) != ErrnoClass::ignore || (!fence_rule(FenceRule::kVerdictIsFstat) && sync_errno != 0);
  uint64_t skipped = 0;
  {
    const MutexLock lock(mutex_);
    ++stats_.checks;
    stats_.check_ns += static_cast<uint64_t>(config_.clock->monotonic_ns() - began);
    if (!dead) ++stats_.checks_passed;
    if (!dead && !pending_.due && !owed_.due) first_failure_ns_ = 0;
    skipped = stats_.checks_skipped;
  }
  check_began_ns_.store(0, std::memory_order_relaxed);
  if (dead) {
    fence("check", pending.op, found != 0 ? found : sync_errno);
    return;
  }
  if (began < next_log_ns_) return;
  next_log_ns_ = began + kLogInterval_ns;
  log(fmt::format("action=disk_error_not_fenced dir={} op={} errno={} check={} skipped_checks={} path={}",
                  config_.directory, disk_op_name(pending.op), errno_name(pending.sys_errno),
                  synced ? "syncfs+fstat" : "fstat", skipped, pending.path));
}

bool DiskFence::wait_idle(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (checking_ || pending_.due) {
    if (!changed_.wait_until(mutex_, deadline) && (checking_ || pending_.due)) return false;
  }
  return true;
}

void DiskFence::release_handle() {
  if (!fence_rule(FenceRule::kHandleClosed)) return;
  const MutexLock lock(mutex_);
  // A check that runs uses the descriptor; the control thread comes again.
  if (fenced() && !checking_) handle_.close();
}

FenceReason DiskFence::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

FenceStats DiskFence::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

void DiskFence::log(std::string line) const {
  if (config_.log) config_.log(line);
}

}  // namespace ragfs
