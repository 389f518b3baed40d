// HandleTable: open file handles of the HTTP API, with leases.
//
// A handle is a path and a promise: it names the file that was at the path when it was opened. A rename, removal or
// unmount of the path or of anything above it breaks the promise, and every later call answers stale_handle. To make
// that exact, calls on a handle hold its path shared while they run, and those mutations hold theirs as a subtree; both
// wait no longer than the deadline of their request. Changes that do not pass through this server are not seen.
//
// A handle that nobody uses for its lease ends; every call renews it. Handles belong to the caller who opened them.
// Bounds: max_handles; one more is refused (full). Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/fs/path_lock_table.h"

namespace ragfs::server {

// Flags of open, as AGFS numbers them.
inline constexpr int64_t kOpenWriteOnly = 1;
inline constexpr int64_t kOpenReadWrite = 2;
inline constexpr int64_t kOpenAppend = 8;
inline constexpr int64_t kOpenCreate = 16;
inline constexpr int64_t kOpenExclusive = 32;
inline constexpr int64_t kOpenTruncate = 64;

struct HandleInfo {
  int64_t id = 0;
  Path path;
  int64_t flags = 0;
  int64_t lease_s = 60;
  int64_t expires_at_ns = 0;  // wall clock
  uint64_t position = 0;
  bool may_read() const { return (flags & 3) != kOpenWriteOnly; }
  bool may_write() const { return (flags & 3) != 0; }
};

class HandleTable {
 public:
  explicit HandleTable(size_t max_handles) : max_handles_(max_handles) {}

  // Held while a call on one path, or a mutation of a subtree, runs.
  using Hold = PathLockTable::Held;
  // For opening, and for calls on a handle. Errors: timeout.
  Result<Hold> hold_file(PathView path, Deadline deadline);
  // For renames, removals and unmounts. Errors: timeout.
  Result<Hold> hold_trees(PathView a, PathView b, Deadline deadline);

  // Errors: full.
  Result<HandleInfo> add(size_t owner, PathView path, int64_t flags, int64_t lease_s, uint64_t position);

  // One call on a handle: its state, and what keeps others out until it is destroyed. Set `info.position` before.
  class Use {
   public:
    HandleInfo info;
    ~Use();
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&&) = delete;

   private:
    friend class HandleTable;
    Use() = default;
    HandleTable* table_ = nullptr;
    Hold file_;
    Hold turn_;  // calls on one handle follow each other
  };
  // Renews the lease. Errors: not_found (no such handle, expired, somebody else's), stale_handle, timeout.
  Result<Use> use(size_t owner, int64_t id, Deadline deadline);

  // Errors: not_found. A stale handle can be closed.
  Result<void> close(size_t owner, int64_t id);
  // Errors: not_found, stale_handle.
  Result<HandleInfo> info(size_t owner, int64_t id);
  Result<HandleInfo> renew(size_t owner, int64_t id, int64_t lease_s);
  std::vector<HandleInfo> list(size_t owner);

  // What was at `path` and below it is gone: call it while hold_trees() is held.
  void break_below(PathView path);

  size_t size() const;
  size_t max() const { return max_handles_; }
  uint64_t expired_total() const { return expired_total_.load(std::memory_order_relaxed); }
  uint64_t stale_total() const { return stale_total_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    HandleInfo info;
    size_t owner = 0;
    int64_t expires_monotonic_ns = 0;
    bool stale = false;
  };
  using Entries = std::map<int64_t, Entry>;

  void drop_expired() RAGFS_REQUIRES(mutex_);
  Result<Entry*> find(size_t owner, int64_t id) RAGFS_REQUIRES(mutex_);
  static void renew(Entry& entry);
  void put_back(const HandleInfo& info);

  const size_t max_handles_;
  PathLockTable files_;
  PathLockTable turns_;
  mutable Mutex mutex_;
  Entries entries_ RAGFS_GUARDED_BY(mutex_);
  int64_t next_id_ RAGFS_GUARDED_BY(mutex_) = 1;
  std::atomic<uint64_t> expired_total_{0};
  std::atomic<uint64_t> stale_total_{0};
};

}  // namespace ragfs::server
