// QueueFileSystem: queues as directories of control files.
//
// mkdir makes a queue; writing `enqueue`, `ack`, `clear` and reading `dequeue`, `peek`, `size`, `status`, `messages`
// act on it. A queue may be nested in another's name ("logs/errors"). Reading has effects, so it is never cached and
// its traits say `control`. Not for: keeping the messages (QueueStore).
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include "ragfs/backends/queue/queue_store.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class QueueFileSystem final : public FileSystem {
 public:
  // Errors: config; io when the database cannot be opened.
  static Result<std::unique_ptr<QueueFileSystem>> open(const QueueConfig& config);
  explicit QueueFileSystem(std::unique_ptr<QueueStore> store);

  const FileSystemTraits& traits() const override { return traits_; }
  Result<void> create(const Context& ctx, PathView path) override;
  Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) override;
  Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) override;
  // Always invalid_operation.
  Result<void> remove(const Context& ctx, PathView path) override;
  // Errors: invalid_operation for the root.
  Result<void> remove_all(const Context& ctx, PathView path) override;
  // Offset and size do not apply: a control file answers as a whole.
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
  const FileSystemTraits traits_;
  const std::unique_ptr<QueueStore> store_;
};

}  // namespace ragfs
