// NestedRoots: the mounts whose root lies below the root of the backend identity that they share.
//
// Such a mount names its objects by the identity and the path of its root in it. That holds while the root stays where
// it was; a rename, or a removal, of a directory at or above it ends that for good: the mount still shows the directory
// it opened, wherever that is now. From then on its reads are not cached and its mutations refuse everything of the
// identity. What makes this safe is the order: who moves a root says so under the mutation lock, after its running
// marks and before the backend does it; who asks has begun its fill or taken its lock before it asks.
// Not for: directories that are moved behind the cache. Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/path.h"
#include "ragfs/base/sync.h"

namespace ragfs {

class NestedRoot {
 public:
  explicit NestedRoot(std::string prefix) : prefix_(std::move(prefix)) {}
  const std::string& prefix() const { return prefix_; }
  bool moved() const { return moved_.load(std::memory_order_acquire); }

 private:
  friend class NestedRoots;
  const std::string prefix_;
  std::atomic<bool> moved_{false};
};

class NestedRoots {
 public:
  // Those that a call has marked: come_back() takes the mark away again.
  using Marked = std::vector<std::shared_ptr<NestedRoot>>;

  // The root at `prefix`, until the last holder lets it go.
  std::shared_ptr<NestedRoot> add(std::string prefix);
  // A directory leaves its place with all below it: marks the roots at and below `path`.
  Marked leave_with_all_below(PathView path) { return mark(path, true); }
  // An empty directory leaves its place: a root can only be that directory itself.
  Marked leave(PathView path) { return mark(path, false); }
  // The backend did nothing, for certain. Under the same lock as the mark.
  static void come_back(const Marked& marked);

 private:
  Marked mark(PathView path, bool below);

  std::atomic<bool> any_{false};
  Mutex mutex_;
  std::vector<std::weak_ptr<NestedRoot>> roots_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
