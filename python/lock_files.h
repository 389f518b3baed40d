// LockFiles: path locks that other processes see, as lock files beside what they lock.
//
// Names and text are the original's, so that both modules may work on one tree: `{dir}/.path.ovlock` locks a directory,
// `{parent}/.exact.ovlock.{name}.{hash}` anything else; the text is `owner:wall clock ns:E|T` (E exact, T tree).
// Taking: look for others' tokens, create ours exclusively, look again; whoever sees another's token in the second look
// takes its own back. A token older than the expiry belongs to a process that is gone, and is removed. Not for: threads
// of one process and waiting (LockBook, which asks here last). Thread-safety: all methods may be called from any
// thread; no mutex is held across I/O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/lock_names.h"
#include "python/lock_request.h"
#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"
#include "ragfs/fs/mount_table.h"

namespace ragfs::python {

// What a lock file says.
struct LockToken {
  std::string owner;
  int64_t time_ns = 0;
  bool tree = false;
};
std::string lock_token_text(const LockToken& token);
// Errors: internal `invalid lock token: ...`.
Result<LockToken> parse_lock_token(std::string_view text);

class LockFiles {
 public:
  // The mounts of `table` are StatsFileSystems.
  LockFiles(std::shared_ptr<MountTable> table, int64_t expire_ms) : table_(std::move(table)), expire_ms_(expire_ms) {}

  // All of them, or the lock that is in the way and none of them. An owner's own tokens are counted, not in its way.
  // Errors: those of the file system.
  Result<std::optional<LockConflict>> take(const std::vector<LockRequest>& requests, const std::string& owner);
  // Takes back what one take() took. A file that went with its directory is fine.
  void give_back(const std::vector<LockRequest>& requests, const std::string& owner);
  // A directory was renamed: the tokens within it moved along, and are given back where they are now.
  void moved(PathView from, PathView to);
  // Whether an exact lock of `path` could not be had now.
  Result<bool> is_locked(const std::string& path);
  // Whether nothing is in the directory but lock files of this process.
  bool holds_all_of(PathView dir);
  // Writes all tokens again with the time of now; to be called more often than the expiry.
  void refresh();
  // Tokens of others that were removed because they were too old.
  uint64_t stale_removed() const;

 private:
  struct Held {
    LockToken token;
    uint32_t count = 0;
    std::string now_at;  // its file after a rename; "" = where it was made
    int pid = 0;         // a forked child leaves its parent's tokens alone
  };
  struct Place {
    std::string request_path;
    std::string file;
    bool tree = false;
  };

  Place place_of(const LockRequest& request) const;
  // The other owner's token that is in the way of one lock.
  Result<std::optional<LockConflict>> look(const Place& place, const std::string& owner);
  Result<std::optional<LockConflict>> look_below(const std::string& dir, const std::string& owner);
  // Nothing where there is no file, or a file of `owner`, or one that was too old (and is gone now).
  Result<std::optional<LockConflict>> look_at(const std::string& file, const std::string& owner, bool trees_only);
  Result<std::optional<LockConflict>> create(const Place& place, const std::string& owner);
  // The earlier token of the same owner at the same file, counted once more. Nothing when there is none.
  std::optional<LockToken> join(const Place& place, const std::string& owner);
  void drop(const std::string& file, const std::string& owner);

  const std::shared_ptr<MountTable> table_;
  const int64_t expire_ms_;
  mutable Mutex mutex_;
  std::map<std::string, Held> held_ RAGFS_GUARDED_BY(mutex_);  // by file; bounded by the locks that are held
  uint64_t stale_removed_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs::python
