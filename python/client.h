// Client: one RAGFS as OpenViking's binding has it: mounts made by calls, paths as its callers write them, its
// automatic path locks, its words for errors. It knows nothing of Python.
//
// Mutations take the user path lock first (unless the context says otherwise), then the cache's own. A
// missing parent directory is created by write, create, touch and as the target of mv, as the
// original's lock does. Not for: decisions about caching. Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/answer.h"
#include "python/lock_book.h"
#include "python/lock_files.h"
#include "python/options.h"
#include "ragfs/config/cache_layer.h"
#include "ragfs/fs/agent_context.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/operation_stats.h"

namespace ragfs::python {

enum class SortBy : uint8_t { none, name, mtime };

struct ListOptions {
  uint64_t offset = 0;
  std::optional<uint64_t> limit;
  SortBy sort_by = SortBy::none;
  bool descending = false;
};

struct TreeQuery {
  TreeOptions options;
  uint64_t offset = 0;
  SortBy sort_by = SortBy::none;
  bool descending = false;
  bool directories_only = false;
};

struct MountStats {
  std::string path;
  std::string plugin;
  std::vector<OperationSnapshot> operations;
};

class Client {
 public:
  static Answer<std::unique_ptr<Client>> open(Options options);
  // Ends what the cache has in flight.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `path` as the caller wrote it; `parameters` an object.
  Answer<void> mount(const std::string& type, const std::string& path, const nlohmann::json& parameters);
  Answer<void> unmount(const std::string& path);
  // Path and type, sorted by path.
  std::vector<std::pair<std::string, std::string>> mounts() const;

  // What a cache in this process has, without waiting; nothing otherwise. May be called with a lock held.
  std::optional<Bytes> read_at_once(const Context& ctx, std::string_view path, uint64_t offset, uint64_t size);
  std::optional<FileInfo> stat_at_once(const Context& ctx, std::string_view path);

  Answer<Bytes> read(const Context& ctx, std::string_view path, uint64_t offset, uint64_t size);
  Answer<uint64_t> write(const Context& ctx, std::string_view path, std::string_view data);
  Answer<void> create(const Context& ctx, std::string_view path);
  Answer<void> touch(const Context& ctx, std::string_view path);
  Answer<void> mkdir(const Context& ctx, std::string_view path, uint32_t mode);
  Answer<void> ensure_parent_dirs(const Context& ctx, std::string_view path, uint32_t mode);
  Answer<void> remove(const Context& ctx, std::string_view path, bool recursive);
  Answer<FileInfo> stat(const Context& ctx, std::string_view path);
  Answer<void> rename(const Context& ctx, std::string_view from, std::string_view to);
  // False when two mounts hold the paths; nothing was copied then.
  Answer<bool> copy_within_mount(const Context& ctx, std::string_view from, std::string_view to);
  Answer<void> chmod(const Context& ctx, std::string_view path, uint32_t mode);
  Answer<std::vector<FileInfo>> list(const Context& ctx, std::string_view path, const ListOptions& options);
  Answer<std::vector<TreeEntry>> tree(const Context& ctx, std::string_view path, const TreeQuery& query);
  Answer<GlobPage> glob(const Context& ctx, std::string_view path, std::string_view pattern, const GlobOptions& options,
                        bool has_token);
  Answer<std::vector<GrepMatch>> grep(const Context& ctx, std::string_view path, GrepOptions options);

  // Many paths in one call (client_batches.cc); an answer a path, as the single call would give it.
  std::vector<Answer<Bytes>> read_many(const Context& ctx, std::span<const std::string> paths);
  std::vector<Answer<FileInfo>> stat_many(const Context& ctx, std::span<const std::string> paths);
  Answer<std::vector<AgentEntry>> list_with_abstracts(const Context& ctx, std::string_view path,
                                                      const AgentListingOptions& options);
  struct WrittenPart {
    std::string path;
    Answer<uint64_t> bytes;
  };
  // A directory's files, under their locks at once. What became of each.
  Answer<std::vector<WrittenPart>> write_context(const Context& ctx, std::string_view path, const ContextFiles& files);

  // Statistics of the mount at or above `path`, or of all.
  Answer<std::vector<MountStats>> stats(const std::optional<std::string>& path) const;
  CacheReport cache_report() const;
  Answer<void> invalidate(std::string_view path);

  LockBook& locks() { return *locks_; }
  // The lock file that a lock of `path` is known by; its directory is made when the lock is to be taken.
  Answer<LockRequest> lock_request(std::string_view path, bool tree, bool for_taking = true);
  const Options& options() const { return options_; }
  // Ends the cache; file calls go on without it. Idempotent.
  void close();

 private:
  // A path of a call, checked, with the mount that answers for it.
  struct Place {
    std::string owned;  // when the caller's text had to be changed
    PathView path;
    Mount mount;
    std::string_view plugin() const { return mount.file_system->traits().type; }
    PathView within() const { return path.relative_to(mount.path); }
    // Shows 0644 and 0755 whatever the file's mode is, as the original's localfs.
    void show_mode(FileInfo& info) const {
      if (plugin() == "localfs") info.mode = info.is_dir() ? kDefaultDirMode : kDefaultFileMode;
    }
  };

  explicit Client(Options options);
  template <typename T>
  using AskMany = std::function<std::vector<Result<T>>(std::span<const PathView>)>;
  template <typename T>
  std::vector<Answer<T>> ask_many(std::span<const std::string> paths, Call call, const AskMany<T>& ask);
  // `call` decides how a name that no file can have is refused.
  Answer<void> locate(std::string_view raw, Call call, Place& place) const;
  // False where no cache can answer.
  bool locate_cached(std::string_view path, Call call, Place& place);
  Answer<void> refuse(std::string_view text, Call call) const;
  // What is wrong with the path of a query comes before what is wrong with the query.
  Answer<void> check_there(const Context& ctx, const Place& place) const;
  // The directory that a lock file of `path` would be in, as the original makes it.
  Answer<void> make_lock_dir(const std::string& path, const Place& place, bool is_dir);
  // A removal's "not found" names the path as the caller wrote it.
  Answer<void> removed_as_asked(Result<void> result, std::string_view path, const Place& place, Call call) const;
  static Answer<void> refuse_lock_file(PathView within);
  // The caller's own touch(), before what the original makes of its failure.
  Answer<void> touch_once(const Context& ctx, const Place& place);
  Answer<LockBook::Hold> lock(const Context& ctx, const std::vector<std::pair<const Place*, bool>>& wanted);
  template <typename T>
  Answer<T> answer(Result<T> result, const Place& place, Call call) const;
  // The mutation under its lock; a missing parent is made and the mutation tried once more.
  template <typename Operation>
  auto with_parents(const Context& ctx, const Place& place, const Operation& operation);
  static bool makes_parents(const Context& ctx) { return !ctx.disable_auto_pathlock; }
  Answer<std::shared_ptr<FileSystem>> wrap(const std::string& type, const Path& path, const nlohmann::json& parameters,
                                           std::shared_ptr<FileSystem> backend);
  // Takes a wrapper out of the cache layer.
  void forget(const FileSystem* file_system);
  // After a fork the child must not serve what the parent goes on changing.
  void notice_fork();

  const Options options_;
  std::shared_ptr<MountTable> table_;
  std::unique_ptr<LockFiles> lock_files_;  // nullptr = no other process
  std::unique_ptr<LockBook> locks_;
  std::unique_ptr<CacheLayer> cache_;
  std::atomic<bool> cached_reads_{false};
  std::atomic<bool> closed_{false};
  const uint64_t generation_;  // of forks
  // A mount that the cache layer knows.
  struct Wrapped {
    Path path;
    std::string root;  // of localfs: the directory itself; "" else
    std::shared_ptr<FileSystem> file_system;
  };
  Mutex mutex_;
  std::vector<Wrapped> wrapped_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::python
