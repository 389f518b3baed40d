// PathLocks: the path locks that users see, as leases.
//
// For: callers that keep a path or a subtree to themselves over several operations (OpenViking does, by lease), and the
// automatic lock of each mutation. In memory: it binds the users of this process. Not for: the cache's mutation lock,
// which every mutation takes besides, whatever its caller asks for.
//
// A lease that is not refreshed for `2 * expire_ms` is taken back; its later release or use is an error. Who presents a
// lease may ask for more: what it covers already is not locked again, and what it holds is not in the way (an exact
// lock becomes a subtree lock that way). Locks that several leases rely on are released with the last of them.
// Bounds: at most `max_leases`; waiting and held locks by PathLockLimits.
// Thread-safety: all methods may be called from any thread. No lock of this object is held while a caller waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"
#include "ragfs/fs/path_lock_table.h"

namespace ragfs {

struct PathLocksConfig {
  int64_t expire_ms = 30'000;  // a lease unrefreshed for twice as long is taken back; at least 1,000
  size_t max_leases = 65'536;
  PathLockLimits table;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

struct PathLocksCounts {
  uint64_t leases = 0;
  uint64_t expired_total = 0;    // taken back
  uint64_t conflicts_total = 0;  // acquisitions that ended without the lock
  PathLockCounts table;
};

class PathLocks {
 public:
  // `config` must be valid.
  explicit PathLocks(PathLocksConfig config = {}, const Clock& clock = Clock::system());

  // A new lease over all `requests`, waiting up to `timeout_ms` (0 = one attempt). `owner_lease` may name a lease of
  // the caller whose cover is not locked again; either may be released first. Returns the new lease's name. Errors:
  // lock_conflict `lock acquire timed out after Nms`; invalid_argument for no requests or an unknown owner_lease;
  // would_block when a bound is reached.
  Result<std::string> acquire(std::span<const PathLockRequest> requests, int64_t timeout_ms,
                              std::string_view owner_lease = {});
  // Errors: invalid_argument when the lease is unknown, released or was taken back.
  Result<void> release(std::string_view lease);
  // True when the lease lives and counts from now on again; false when it was lost.
  bool refresh(std::string_view lease);
  // Whether the lease lives and covers all requests. A subtree covers what is below it; exact covers itself.
  // Errors: internal `lock lease error: ...` saying what is not covered.
  Result<void> check_covers(std::string_view lease, std::span<const PathLockRequest> requests);
  // Whether an exact lock of `path` could not be had now.
  bool is_locked(PathView path);

  // A lock for the time of one operation. Errors: as acquire.
  Result<PathLockTable::Held> hold(std::span<const PathLockRequest> requests, int64_t timeout_ms);

  PathLocksCounts counts();

 private:
  struct Owned {
    std::string path;
    PathLockKind kind;
  };
  // What one acquisition got, for the leases that rely on it.
  struct Grant {
    std::vector<Owned> paths;
    PathLockTable::Held held;
  };
  struct Lease {
    std::vector<Owned> covered;
    std::vector<std::shared_ptr<const Grant>> grants;  // at least one
    int64_t refreshed_ns = 0;
  };

  static bool covers(std::span<const Owned> owned, const PathLockRequest& request);
  // Takes out of `requests` what the owner's lease covers, and returns the grants that cover it and, first, one of the
  // owner's (they share one ticket).
  Result<std::vector<std::shared_ptr<const Grant>>> relied_on(std::string_view owner_lease,
                                                              std::vector<PathLockRequest>& requests)
      RAGFS_REQUIRES(mutex_);
  // hold(), for the holder of `owner` where that is not nullptr.
  Result<PathLockTable::Held> hold_more(const PathLockTable::Held* owner, std::span<const PathLockRequest> requests,
                                        int64_t timeout_ms);
  // Takes back what nobody refreshed, and returns when the next lease would be.
  int64_t take_back_expired();
  Error conflict(int64_t timeout_ms);

  const PathLocksConfig config_;
  const Clock& clock_;
  PathLockTable table_;
  Mutex mutex_;
  uint64_t next_ RAGFS_GUARDED_BY(mutex_) = 1;
  std::map<std::string, Lease, std::less<>> leases_ RAGFS_GUARDED_BY(mutex_);
  uint64_t expired_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t conflicts_ RAGFS_GUARDED_BY(mutex_) = 0;
  const uint64_t seed_;
};

}  // namespace ragfs
