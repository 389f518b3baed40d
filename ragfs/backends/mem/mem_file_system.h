// MemFileSystem (memfs): a tree in the memory of this process, gone with the object.
//
// For: temporary mounts, and tests of everything that stands above a backend. Not for: data that must survive.
// A read hands out the file's own memory without a copy. A file's version is a counter that no two contents share.
//
// Thread-safety: all methods may be called from any thread. One lock guards the tree: shared for reads, exclusive for
// mutations; content is copied in before it is taken, and freed after it is released.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ragfs/backends/mem/mem_config.h"
#include "ragfs/backends/mem/mem_node.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class MemFileSystem final : public FileSystem {
 public:
  // An empty tree with an identity of its own. `clock` gives the times of files and must outlive the file system.
  // Errors: config.
  static Result<std::unique_ptr<MemFileSystem>> open(const MemConfig& config, const Clock& clock = Clock::system());
  ~MemFileSystem() override;

  const FileSystemTraits& traits() const override { return traits_; }

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
  Result<FileInfo> stat(const Context& ctx, PathView path) override;
  Result<bool> exists(const Context& ctx, PathView path) override;
  Result<std::string> version(const Context& ctx, PathView path) override;

  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;

  // Bytes and entries counted against the configuration.
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t used_entries() const { return used_entries_.load(std::memory_order_relaxed); }

 private:
  MemFileSystem(const MemConfig& config, const Clock& clock);

  // The file at `path`. Errors: not_found, is_a_directory.
  Result<MemNode*> find_file(PathView path) const RAGFS_REQUIRES_SHARED(lock_);
  // A new child of `parent`, charged. Errors: full.
  Result<MemNode*> add_child(MemNode& parent, PathView path, bool is_dir, uint32_t mode) RAGFS_REQUIRES(lock_);
  // The file at `path`, made when it is missing. Errors: those of the parent, is_a_directory, full.
  Result<MemNode*> find_or_add_file(PathView path) RAGFS_REQUIRES(lock_);
  // Missing ancestors of `path`. Errors: not_a_directory, full.
  Result<void> add_parents(PathView path, uint32_t mode) RAGFS_REQUIRES(lock_);
  // Takes `path` out of its parent; the caller gives it back to forget() without the lock.
  std::unique_ptr<MemNode> detach(PathView path) RAGFS_REQUIRES(lock_);
  void forget(std::string_view name, std::unique_ptr<MemNode> node);
  // What rename() refuses about an existing target. nullptr: there is none.
  Result<void> check_rename_target(PathView from, PathView to, const MemNode& source, const MemNode* target) const;
  // Moves `from` over `to`; returns what was replaced. All checks have been made.
  std::unique_ptr<MemNode> move_node(PathView from, PathView to) RAGFS_REQUIRES(lock_);
  // Gives `node` new content and times. check_room() was asked before.
  void set_content(MemNode& node, MemContent content) RAGFS_REQUIRES(lock_);
  // Writes `data` at `start`. Errors: full, invalid_operation.
  Result<void> write_part(PathView path, MemNode& node, std::string_view data, uint64_t start) RAGFS_REQUIRES(lock_);
  // Refuses growth past the capacity. Nothing is counted yet.
  Result<void> check_room(uint64_t old_bytes, uint64_t new_bytes, uint64_t new_entries, PathView path) const;
  void touch_node(MemNode& node) RAGFS_REQUIRES(lock_);

  const MemConfig config_;
  const Clock& clock_;
  FileSystemTraits traits_;
  std::atomic<uint64_t> used_bytes_{0};    // grows under lock_, shrinks also without it
  std::atomic<uint64_t> used_entries_{0};  // the same
  mutable SharedMutex lock_;
  std::unique_ptr<MemNode> root_ RAGFS_GUARDED_BY(lock_);
  uint64_t last_version_ RAGFS_GUARDED_BY(lock_) = 0;
};

}  // namespace ragfs
