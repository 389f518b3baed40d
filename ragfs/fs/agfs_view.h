// AgfsView: the tree of mounts as AGFS servers show it.
//
// "/" and every ancestor of a mount exist as directories, and mounts appear in the listings of their parents.
// Everything else goes to the layers below unchanged. For the HTTP server, the FUSE mount and the CLI. Not for the
// Python binding, whose callers rely on mount_point_not_found. Thread-safety: all methods may be called from any
// thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/fs/mount_table.h"

namespace ragfs {

class AgfsView final : public FileSystem {
 public:
  // `top` is the outermost layer around `mounts`.
  AgfsView(std::shared_ptr<FileSystem> top, std::shared_ptr<const MountTable> mounts);

  const FileSystemTraits& traits() const override { return top_->traits(); }
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
  // With the mounts directly below, each once.
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override;
  Result<std::vector<FileInfo>> read_internal_dir(const Context& ctx, PathView path) override;
  // A mount root has the name of its mount path.
  Result<FileInfo> stat(const Context& ctx, PathView path) override;
  std::optional<FileInfo> stat_at_once(const Context& ctx, PathView path) override;
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
  // Over a path with mounts below it tree and glob walk this view; else the layers below answer.
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override;
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override;
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

 private:
  // What of the mounts lies below a path.
  struct Below {
    bool any = false;
    int64_t oldest_ns = 0;
    std::vector<std::string> children;  // names of mounts directly below, and of directories that lead to deeper ones
  };
  Below below(PathView path) const;
  // True for a directory that exists only because a mount is below it.
  bool is_virtual(const Error& error, const Below& below) const;

  const std::shared_ptr<FileSystem> top_;
  const std::shared_ptr<const MountTable> mounts_;
};

}  // namespace ragfs
