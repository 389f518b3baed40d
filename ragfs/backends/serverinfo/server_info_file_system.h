// ServerInfoFileSystem: what runs here and since when, as read-only files.
//
// /server_info (JSON), /uptime, /version, /stats, /README. Its answers change by themselves, so it is never cached.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <string>

#include "ragfs/fs/file_system.h"

namespace ragfs {

class ServerInfoFileSystem final : public FileSystem {
 public:
  explicit ServerInfoFileSystem(std::string version);

  const FileSystemTraits& traits() const override { return traits_; }
  // Every mutation fails with plugin `operation not permitted: serverinfofs is read-only`.
  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> remove(const Context& ctx, PathView path) override;
  Result<void> remove_all(const Context& ctx, PathView path) override;
  Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) override;
  Result<FileContent> read_file(const Context& ctx, PathView path) override;
  Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                            WriteFlag flag) override;
  Result<void> truncate(const Context& ctx, PathView path, uint64_t size) override;
  Result<void> touch(const Context& ctx, PathView path) override;
  Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) override;
  Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) override;
  Result<FileInfo> stat(const Context& ctx, PathView path) override;
  Result<void> rename(const Context& ctx, PathView from, PathView to) override;

 private:
  // Errors: not_found.
  Result<std::string> content(PathView path) const;

  const FileSystemTraits traits_;
  const std::string version_;
  const int64_t started_wall_ns_;
  const int64_t started_ns_;
};

}  // namespace ragfs
