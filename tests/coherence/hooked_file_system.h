// HookedFileSystem: a backend that does what a test says, before and after each call of the real one.
//
// For: tests of the cache over a backend that fails, stalls, throws, changes behind it or answers an error for what it
// did. `before` runs first; its error is the answer and nothing is done. `after` runs when the call was done; its error
// replaces the answer (a timeout whose work landed). Not for: production.
// Thread-safety: all methods may be called from any thread; hooks run without a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class HookedFileSystem final : public FileSystem {
 public:
  using Hook = std::function<std::optional<Error>(std::string_view operation, PathView path)>;

  explicit HookedFileSystem(std::shared_ptr<FileSystem> inner) : inner_(std::move(inner)), traits_(inner_->traits()) {}

  void set_before(Hook hook) {
    MutexLock lock(mutex_);
    before_ = std::move(hook);
  }
  void set_after(Hook hook) {
    MutexLock lock(mutex_);
    after_ = std::move(hook);
  }
  // How often an operation was called.
  uint64_t calls(std::string_view operation) const {
    MutexLock lock(mutex_);
    const auto found = calls_.find(operation);
    return found == calls_.end() ? 0 : found->second;
  }
  void forget_calls() {
    MutexLock lock(mutex_);
    calls_.clear();
  }
  // Before the file system is used.
  FileSystemTraits& mutable_traits() { return traits_; }

  // Of every file from here on, as on a backend whose times are coarse. Before the file system is used.
  void give_every_file_the_version(std::string version) { only_version_ = std::move(version); }

  const FileSystemTraits& traits() const override { return traits_; }
  Result<void> create(const Context& ctx, PathView path) override {
    return run("create", path, [&] { return inner_->create(ctx, path); });
  }
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override {
    return run("mkdir", path, [&] { return inner_->mkdir(ctx, path, mode); });
  }
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override {
    return run("ensure_parent_dirs", path, [&] { return inner_->ensure_parent_dirs(ctx, path, mode); });
  }
  Result<void> remove(const Context& ctx, PathView path) override {
    return run("remove", path, [&] { return inner_->remove(ctx, path); });
  }
  Result<void> remove_all(const Context& ctx, PathView path) override {
    return run("remove_all", path, [&] { return inner_->remove_all(ctx, path); });
  }
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override {
    return run("read", path, [&] { return inner_->read(ctx, path, offset, size); });
  }
  Result<FileContent> read_file(const Context& ctx, PathView path) override {
    return run("read_file", path, [&] {
      Result<FileContent> content = inner_->read_file(ctx, path);
      if (content && !only_version_.empty()) content->meta.version = only_version_;
      return content;
    });
  }
  Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override {
    return run("write", path, [&] { return inner_->write(ctx, path, data, offset, flag); });
  }
  Result<bool> compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                 std::string_view replacement) override {
    return run("compare_and_write", path, [&] { return inner_->compare_and_write(ctx, path, expected, replacement); });
  }
  Result<bool> compare_and_remove(const Context& ctx, PathView path, std::string_view expected) override {
    return run("compare_and_remove", path, [&] { return inner_->compare_and_remove(ctx, path, expected); });
  }
  Result<void> truncate(const Context& ctx, PathView path, uint64_t size) override {
    return run("truncate", path, [&] { return inner_->truncate(ctx, path, size); });
  }
  Result<void> touch(const Context& ctx, PathView path) override {
    return run("touch", path, [&] { return inner_->touch(ctx, path); });
  }
  Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) override {
    return run("chmod", path, [&] { return inner_->chmod(ctx, path, mode); });
  }
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override {
    return run("read_dir", path, [&] { return inner_->read_dir(ctx, path); });
  }
  Result<std::vector<FileInfo>> read_internal_dir(const Context& ctx, PathView path) override {
    return run("read_internal_dir", path, [&] { return inner_->read_internal_dir(ctx, path); });
  }
  Result<FileInfo> stat(const Context& ctx, PathView path) override {
    return run("stat", path, [&] { return inner_->stat(ctx, path); });
  }
  Result<bool> exists(const Context& ctx, PathView path) override {
    return run("exists", path, [&] { return inner_->exists(ctx, path); });
  }
  Result<std::string> version(const Context& ctx, PathView path) override {
    return run("version", path, [&] {
      Result<std::string> version = inner_->version(ctx, path);
      if (version && !only_version_.empty()) version = only_version_;
      return version;
    });
  }
  Result<Path> resolve(const Context& ctx, PathView path) override {
    return run("resolve", path, [&] { return inner_->resolve(ctx, path); });
  }
  Result<void> rename(const Context& ctx, PathView from, PathView to) override {
    return run("rename", from, [&] { return inner_->rename(ctx, from, to); });
  }
  Result<void> replace(const Context& ctx, PathView from, PathView to) override {
    return run("replace", from, [&] { return inner_->replace(ctx, from, to); });
  }
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override {
    return run("copy", from, [&] { return inner_->copy(ctx, from, to); });
  }
  Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options) override {
    return run("tree", path, [&] { return inner_->tree(ctx, path, options); });
  }
  Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                        const GlobOptions& options) override {
    return run("glob", path, [&] { return inner_->glob(ctx, path, pattern, options); });
  }
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override {
    return run("grep", path, [&] { return inner_->grep(ctx, path, options, sink); });
  }

 private:
  template <typename Call>
  auto run(std::string_view operation, PathView path, const Call& call) -> decltype(call()) {
    Hook before;
    Hook after;
    {
      MutexLock lock(mutex_);
      ++calls_[std::string(operation)];
      before = before_;
      after = after_;
    }
    if (before) {
      if (std::optional<Error> error = before(operation, path)) return std::unexpected(*std::move(error));
    }
    auto result = call();
    if (after) {
      if (std::optional<Error> error = after(operation, path)) return std::unexpected(*std::move(error));
    }
    return result;
  }

  const std::shared_ptr<FileSystem> inner_;
  FileSystemTraits traits_;
  std::string only_version_;
  mutable Mutex mutex_;
  Hook before_ RAGFS_GUARDED_BY(mutex_);
  Hook after_ RAGFS_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t, std::less<>> calls_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
