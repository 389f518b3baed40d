// MountTable: several file systems at paths of one tree.
//
// The longest mount path at or above a path decides; mounts may nest. Listings are sorted and without internal names
// (lock files). Mount points are not shown in the listings of their parents, and a path under no mount is
// mount_point_not_found, as in RAGFS; AgfsView shows the tree the other way. Errors of a backend name the path within
// the mount. Not for: policy, locks, statistics; those are layers around it or around a mount.
// Thread-safety: all methods may be called from any thread. Finding the mount takes no global lock and no system call.
// A call that runs while its mount is taken away ends on the file system it began with.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/fs/striped_snapshot.h"

namespace ragfs {

struct Mount {
  Path path;
  std::shared_ptr<FileSystem> file_system;
  int64_t mounted_at_ns = 0;  // wall clock
};

class MountTable final : public FileSystem {
 public:
  static constexpr size_t kMaxMounts = 4096;

  MountTable();
  ~MountTable() override;

  // Errors: mount_point_exists; full past kMaxMounts. Of several callers with one path exactly one succeeds.
  Result<void> mount(PathView path, std::shared_ptr<FileSystem> file_system);
  // The file system that was there; calls in flight may still use it. Errors: mount_point_not_found.
  Result<std::shared_ptr<FileSystem>> unmount(PathView path);
  // Sorted by path.
  std::vector<Mount> mounts() const;
  // The mount that answers for `path`. Errors: mount_point_not_found.
  Result<Mount> mount_of(PathView path) const;
  // Whether one mount answers for both. Errors: mount_point_not_found.
  Result<bool> same_mount(PathView a, PathView b) const;

  const FileSystemTraits& traits() const override;
  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  // not_found names the whole path, for both removals.
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
  // Sorted, without internal names.
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override;
  // Sorted.
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
  // Errors besides the backend's: invalid_operation across mounts.
  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  // Within a mount the backend copies; across mounts the content is read and written.
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override;
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override;
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

 private:
  class Table;

  // Calls `operation(file system, path within it)` on the mount of `path`.
  template <typename Operation>
  auto on_mount(PathView path, const Operation& operation) const;
  // One call of `ask(file system, items within it)` for each mount that has some of `items`; the answers in their
  // order. `path_of` gives an item's path to read and to change.
  template <typename Answer, typename Item, typename PathOf, typename Ask>
  std::vector<Answer> on_mounts(std::span<const Item> items, const PathOf& path_of, const Ask& ask) const;
  // The same for two paths of one mount; `verb` words the refusal.
  template <typename Operation>
  Result<void> on_one_mount(PathView from, PathView to, std::string_view verb, const Operation& operation) const;

  Mutex mutex_;  // orders mount and unmount
  StripedSnapshot<Table> table_;
};

// Copies a file if one mount holds both paths; false when two do, and nothing was copied. The copy itself goes through
// `top`, the layers around the table. Errors: mount_point_not_found and those of FileSystem::copy.
Result<bool> copy_within_mount(const MountTable& mounts, FileSystem& top, const Context& ctx, PathView from,
                               PathView to);

}  // namespace ragfs
