// ExceptionBarrier: a file system whose inner one may throw; callers only ever see errors.
//
// For: standing directly before a backend, so that an exception (no memory, a bug in a client library) becomes an
// `internal` error of that one call and no state above it is left half done. Forwards everything else unchanged.
// It is also where a backend's slow calls are noticed, those of a read too, which nobody else times one by one.
// Not for: making a backend's own state right again after it threw.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "ragfs/fs/file_system.h"

namespace ragfs {

// Calls of a backend that took `threshold_ns` or longer are told; 0 = none, and no clock is read.
struct SlowCalls {
  int64_t threshold_ns = 0;
  // The call is over; `error` is nullptr when it succeeded. Called on the caller's thread.
  std::function<void(std::string_view operation, PathView path, int64_t took_ns, const Error* error)> told;
};

class ExceptionBarrier final : public FileSystem {
 public:
  explicit ExceptionBarrier(std::shared_ptr<FileSystem> inner, SlowCalls slow = {})
      : inner_(std::move(inner)), slow_(std::move(slow)) {}

  const FileSystemTraits& traits() const override { return inner_->traits(); }

  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> remove(const Context& ctx, PathView path) override;
  Result<void> remove_all(const Context& ctx, PathView path) override;
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override;
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
  auto guard(std::string_view operation, PathView path, const Call& call) -> decltype(call());

  const std::shared_ptr<FileSystem> inner_;
  const SlowCalls slow_;
};

}  // namespace ragfs
