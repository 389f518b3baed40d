// SlowFileSystem: a file system whose whole-file reads take a given time, and are counted.
//
// For: benchmarks of merged reads; only what they call is slowed, the rest goes straight through. Not for: anything
// else. Thread-safety: that of the file system behind it.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "ragfs/fs/file_system.h"

namespace ragfs::bench {

class SlowFileSystem final : public FileSystem {
 public:
  SlowFileSystem(std::shared_ptr<FileSystem> inner, int64_t read_ms) : inner_(std::move(inner)), read_ms_(read_ms) {}
  FileSystem& inner() { return *inner_; }
  uint64_t reads() const { return reads_.load(); }

  const FileSystemTraits& traits() const override { return inner_->traits(); }
  Result<FileContent> read_file(const Context& ctx, PathView path) override {
    ++reads_;
    std::this_thread::sleep_for(std::chrono::milliseconds(read_ms_));
    return inner_->read_file(ctx, path);
  }
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override {
    ++reads_;
    std::this_thread::sleep_for(std::chrono::milliseconds(read_ms_));
    return inner_->read(ctx, path, offset, size);
  }
  Result<void> create(const Context& ctx, PathView path) override { return inner_->create(ctx, path); }
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override {
    return inner_->mkdir(ctx, path, mode);
  }
  Result<void> remove(const Context& ctx, PathView path) override { return inner_->remove(ctx, path); }
  Result<void> remove_all(const Context& ctx, PathView path) override { return inner_->remove_all(ctx, path); }
  Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override {
    return inner_->write(ctx, path, data, offset, flag);
  }
  Result<void> truncate(const Context& ctx, PathView path, uint64_t size) override {
    return inner_->truncate(ctx, path, size);
  }
  Result<void> touch(const Context& ctx, PathView path) override { return inner_->touch(ctx, path); }
  Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) override {
    return inner_->chmod(ctx, path, mode);
  }
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override {
    return inner_->read_dir(ctx, path);
  }
  Result<FileInfo> stat(const Context& ctx, PathView path) override { return inner_->stat(ctx, path); }
  Result<void> rename(const Context& ctx, PathView from, PathView to) override { return inner_->rename(ctx, from, to); }

 private:
  const std::shared_ptr<FileSystem> inner_;
  const int64_t read_ms_;
  std::atomic<uint64_t> reads_{0};
};

}  // namespace ragfs::bench
