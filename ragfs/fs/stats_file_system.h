// StatsFileSystem: counts and times the calls to the file system behind it, and changes nothing.
//
// One stands around the whole tree and one around each mount. Of one sampled call both record a latency with one pair
// of clock reads: the outer's start and the inner's end (Context::sampled_start_ns). A call for many paths counts as
// one operation a path, untimed. Not for: deciding anything. Thread-safety: all methods may be called from any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/fs/file_system.h"
#include "ragfs/fs/operation_stats.h"

namespace ragfs {

class StatsFileSystem final : public FileSystem {
 public:
  explicit StatsFileSystem(std::shared_ptr<FileSystem> inner);

  const OperationStats& stats() const { return stats_; }
  FileSystem& inner() { return *inner_; }

  const FileSystemTraits& traits() const override { return inner_->traits(); }
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
  template <typename Call>
  auto measure(const Context& ctx, Operation operation, const Call& call);
  template <typename T>
  std::vector<Result<T>> count_all(Operation operation, std::vector<Result<T>> answers);

  const std::shared_ptr<FileSystem> inner_;
  OperationStats stats_;
};

}  // namespace ragfs
