// PathLockFileSystem: takes the user-visible path lock around every mutation, and forwards everything else.
//
// create, write, truncate, touch, remove, copy (target), compare_and_*: exact; write_many: all its paths, at once.
// remove_all: subtree. rename: a directory takes its subtree and the exact target, a file both exact; replace both
// exact. mkdir, chmod, ensure_parent_dirs and reads take none. A call with disable_auto_pathlock takes none; a call
// with a lease must be covered by it. Lock files themselves and the configured prefixes (queues, server info) are left
// alone. Not for: coherence of the cache (its mutation lock is taken below, always). Thread-safety: all methods may be
// called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/fs/file_system.h"
#include "ragfs/fs/path_locks.h"

namespace ragfs {

struct AutoLockConfig {
  int64_t timeout_ms = 0;  // how long a mutation waits for its lock; 0 = fails at once
  std::vector<std::string> skip_prefixes = {"/queue", "/serverinfo"};  // normalised paths that are never locked
};

class PathLockFileSystem final : public FileSystem {
 public:
  PathLockFileSystem(std::shared_ptr<FileSystem> inner, std::shared_ptr<PathLocks> locks, AutoLockConfig config = {});

  const FileSystemTraits& traits() const override { return inner_->traits(); }
  PathLocks& locks() { return *locks_; }

  // Mutations: besides the errors of the file system below, lock_conflict `lock acquire timed out after Nms` and
  // internal `lock lease error: ...`.
  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> remove(const Context& ctx, PathView path) override;
  Result<void> remove_all(const Context& ctx, PathView path) override;
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override;
  std::optional<Bytes> read_at_once(const Context& ctx, PathView path) override;
  Result<FileContent> read_file(const Context& ctx, PathView path) override;
  Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override;
  Result<bool> compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                 std::string_view replacement) override;
  Result<bool> compare_and_remove(const Context& ctx, PathView path, std::string_view expected) override;
  Result<void> truncate(const Context& ctx, PathView path, uint64_t size) override;
  Result<void> touch(const Context& ctx, PathView path) override;
  Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) override;
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override;
  Result<std::vector<FileInfo>> read_internal_dir(const Context& ctx, PathView path) override;
  Result<FileInfo> stat(const Context& ctx, PathView path) override;
  std::optional<FileInfo> stat_at_once(const Context& ctx, PathView path) override;
  Result<bool> exists(const Context& ctx, PathView path) override;
  std::vector<Result<Bytes>> read_many(const Context& ctx, std::span<const PathView> paths) override;
  std::vector<Result<FileInfo>> stat_many(const Context& ctx, std::span<const PathView> paths) override;
  std::vector<Result<std::vector<FileInfo>>> read_dir_many(const Context& ctx,
                                                           std::span<const PathView> paths) override;
  std::vector<Result<WriteResult>> write_many(const Context& ctx, std::span<const WriteItem> items) override;
  Result<std::string> version(const Context& ctx, PathView path) override;
  Result<Path> resolve(const Context& ctx, PathView path) override;
  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override;
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override;
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

 private:
  // The lock of one mutation; empty where none is needed.
  Result<PathLockTable::Held> lock(const Context& ctx, std::vector<PathLockRequest> requests);
  Result<PathLockTable::Held> lock_exact(const Context& ctx, PathView path) {
    return lock(ctx, {{path, PathLockKind::exact}});
  }
  bool skips(PathView path) const;

  const std::shared_ptr<FileSystem> inner_;
  const std::shared_ptr<PathLocks> locks_;
  const AutoLockConfig config_;
};

}  // namespace ragfs
