// LockBook: the path locks that OpenViking sees: leases, hand-over, automatic locks.
//
// exact(p) excludes other owners' exact(p) and tree(q) with p within q; tree(p) excludes everything of other owners at
// or below p and their trees above it. A batch is granted whole or not at all. A lease is a set of locks of one owner;
// asked for with the reference of a lease, further locks join its owner and do not exclude it. A lease that is not
// refreshed for twice the expiry is taken back. A lease can be parked for another holder (handoff), who adopts it once.
// With LockFiles, a lock is granted once other processes that share the tree have none in its way either; who waits for
// them looks again and again. Not for: coherence of the cache.
// A thread renews the lock files while there are any. Bounds: kMaxLeases leases, kMaxConflicts remembered conflicts.
// Thread-safety: all methods may be called from any thread; no lock of the book is held while a caller waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "python/lock_request.h"
#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"

namespace ragfs::python {

class LockFiles;

// What a holder shows for its lease.
struct LeaseRef {
  std::string lease_ref;
  std::string owner_id;
  std::string ownership_ref;  // "" in a borrowed reference and in a hand-over
  std::vector<std::string> lock_paths;
  std::vector<LockRequest> covered;
};

struct LockReport {
  uint64_t active = 0;
  uint64_t waiting = 0;
  uint64_t stale_removed = 0;
  uint64_t conflicts_total = 0;
  uint64_t descendant_scans = 0;
  uint64_t descendant_scan_ns = 0;
  std::vector<LockConflict> conflicts;  // the newest
};

class LockBook {
 public:
  static constexpr size_t kMaxLeases = 65'536;
  static constexpr size_t kMaxConflicts = 256;

  // `files` (nullptr = no other process) outlives the book.
  explicit LockBook(int64_t expire_ms, LockFiles* files = nullptr);
  ~LockBook();
  LockBook(const LockBook&) = delete;
  LockBook& operator=(const LockBook&) = delete;

  // Waits up to `timeout_ms` (0 = one attempt). `owner_lease` is the lease_ref of a lease to join, "" for a new owner.
  // Errors: lock_conflict `lock acquire timed out after Nms`; invalid_argument; would_block past kMaxLeases.
  Result<LeaseRef> acquire(std::vector<LockRequest> requests, int64_t timeout_ms, std::string_view owner_lease);
  // The same without waiting; nothing on a conflict, which is not counted: the caller will ask again.
  Result<std::optional<LeaseRef>> try_acquire(const std::vector<LockRequest>& requests, std::string_view owner_lease);
  // What a caller says whose try_acquire had no success until its end.
  Error give_up(const std::vector<LockRequest>& requests, int64_t waited_ms);

  // The lock of one operation. Ends when destroyed.
  class Hold {
   public:
    Hold() = default;
    Hold(LockBook* book, std::string owner, std::vector<LockRequest> requests)
        : book_(book), owner_(std::move(owner)), requests_(std::move(requests)) {}
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&&) = delete;
    ~Hold();

   private:
    LockBook* book_ = nullptr;
    std::string owner_;
    std::vector<LockRequest> requests_;
  };
  Result<Hold> hold(std::vector<LockRequest> requests, int64_t timeout_ms);

  // Errors of the following: invalid_argument `owned lease capability does not match ref 'R'`.
  Result<void> release(std::string_view lease_ref, std::string_view ownership_ref);
  // Only those of the lease's locks whose lock file is named. The rest of the lease lives on.
  Result<void> release_selected(std::string_view lease_ref, std::string_view ownership_ref,
                                const std::vector<std::string>& lock_paths);
  // True: it counts from now on again.
  Result<bool> refresh(std::string_view lease_ref, std::string_view ownership_ref);
  // The lease as its holder sees it.
  Result<LeaseRef> show(std::string_view lease_ref, std::string_view ownership_ref);
  // Parks the lease: nobody holds it until somebody adopts it.
  Result<void> hand_off(std::string_view lease_ref, std::string_view ownership_ref);
  // Errors: lock_conflict `handoff/adopt failed: ...`.
  Result<LeaseRef> adopt(std::string_view lease_ref, std::string_view owner_id,
                         const std::vector<std::string>& lock_paths);

  // Errors: internal `lock lease error: invalid lock request: ...`.
  Result<void> check_covers(std::string_view lease_ref, const std::vector<LockRequest>& requests);
  // Whether an exact lock of `path` could not be had now.
  Result<bool> is_locked(const std::string& path);
  LockReport report();
  // Granting takes file operations: not to be done where a loop or a lock waits.
  bool keeps_files() const { return files_ != nullptr; }

  // Changes with every release; what a waiter outside of the book watches.
  uint64_t changes();
  // Waits for a release after `seen`, or the deadline, or wake().
  void wait_for_change(uint64_t seen, Deadline deadline);
  void wake();

 private:
  struct Entry {
    std::string owner;
    bool tree = false;
    uint32_t count = 1;  // leases and operations of the owner that hold it
    std::string lock_path;
  };
  struct Lease {
    std::string owner_id;
    std::string ownership_ref;
    std::vector<LockRequest> requests;
    int64_t refreshed_ns = 0;
    bool parked = false;
    bool ending = false;  // its files are being given back
  };
  // Locks whose files are to be given back.
  struct Gone {
    std::vector<LockRequest> requests;
    std::string owner;
  };

  std::optional<LockConflict> conflict(const LockRequest& request, std::string_view owner) RAGFS_REQUIRES(mutex_);
  std::optional<LockConflict> conflict(const std::vector<LockRequest>& requests, std::string_view owner)
      RAGFS_REQUIRES(mutex_);
  void add(const std::vector<LockRequest>& requests, const std::string& owner) RAGFS_REQUIRES(mutex_);
  void remove(const std::vector<LockRequest>& requests, std::string_view owner) RAGFS_REQUIRES(mutex_);
  void remove_one(const LockRequest& request, std::string_view owner) RAGFS_REQUIRES(mutex_);
  // grant() and the lock files.
  Result<void> obtain(const std::vector<LockRequest>& requests, const std::string& owner, int64_t timeout_ms);
  // One attempt at the files of what was granted already; takes the grant back when there is no success.
  Result<bool> take_files(const std::vector<LockRequest>& requests, const std::string& owner, LockConflict& blocked);
  // Gives back the files of leases that have expired.
  void flush_expired();
  // What the thread does that renews the lock files.
  void keep_files();
  // Waits until `requests` are granted to `owner` and adds them.
  Result<void> grant(const std::vector<LockRequest>& requests, const std::string& owner, int64_t timeout_ms)
      RAGFS_REQUIRES(mutex_);
  // When the next lease may expire. Looks at the leases only when one may have.
  int64_t take_back_expired() RAGFS_REQUIRES(mutex_);
  Result<std::string> owner_of(std::string_view owner_lease) RAGFS_REQUIRES(mutex_);
  LeaseRef open_lease(const std::vector<LockRequest>& requests, const std::string& owner) RAGFS_REQUIRES(mutex_);
  Result<Lease*> owned(std::string_view lease_ref, std::string_view ownership_ref) RAGFS_REQUIRES(mutex_);
  Error refuse(const LockConflict& conflict, int64_t timeout_ms) RAGFS_REQUIRES(mutex_);
  void drop_lease(std::string_view lease_ref) RAGFS_REQUIRES(mutex_);

  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  const int64_t expire_ms_;
  LockFiles* const files_;
  std::atomic<uint64_t> next_operation_{1};
  Mutex mutex_;
  CondVar changed_;
  uint64_t changes_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::vector<Entry>, std::less<>> held_ RAGFS_GUARDED_BY(mutex_);  // by path
  std::unordered_map<std::string, Lease, TextHash, std::equal_to<>> leases_ RAGFS_GUARDED_BY(mutex_);
  int64_t next_expiry_ns_ RAGFS_GUARDED_BY(mutex_) = INT64_MAX;  // no lease expires earlier
  std::vector<Gone> gone_ RAGFS_GUARDED_BY(mutex_);
  std::deque<std::string> adopted_ RAGFS_GUARDED_BY(mutex_);  // owners whose parked lease was taken, the newest
  std::deque<LockConflict> conflicts_ RAGFS_GUARDED_BY(mutex_);
  LockReport counts_ RAGFS_GUARDED_BY(mutex_);
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  CondVar stop_;
  std::thread keeper_;  // only with files
  int keeper_pid_ = 0;  // a forked child has no such thread
};

}  // namespace ragfs::python
