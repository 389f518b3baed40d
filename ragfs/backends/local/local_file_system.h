// LocalFileSystem (localfs): a directory of the host as a tree.
//
// For: the default storage of an agent context database. What it adds to the host's file system: a whole-file write is
// a temporary file and a rename, so a reader sees the old bytes or the new ones and a full disk leaves the old ones; a
// whole read is a snapshot with the meta that belongs to it; no path leads out of the root, through symlinks neither;
// an errno that means "could not ask" is never not_found.
// What it does not do: modes (stat shows constants, chmod checks existence), fsync (see LocalConfig::sync_writes),
// keeping hard links across a whole-file write. Appends and writes at an offset happen in place and are not atomic for
// readers.
//
// Thread-safety: all methods may be called from any thread; there is no lock, the kernel's rules hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/backends/local/local_config.h"
#include "ragfs/backends/local/local_paths.h"
#include "ragfs/backends/local/temp_files.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class LocalFileSystem final : public FileSystem {
 public:
  // `files` is the seam to the kernel and must outlive the file system.
  // Errors: config; plugin when the root is missing or not a directory; not_supported on Linux older than 5.6.
  static Result<std::unique_ptr<LocalFileSystem>> open(const LocalConfig& config,
                                                       PosixFiles& files = PosixFiles::system());

  const FileSystemTraits& traits() const override { return traits_; }
  // The root directory's name on the host when it was opened, links resolved.
  const std::string& root_dir() const { return paths_.root_dir(); }

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
  Result<Path> resolve(const Context& ctx, PathView path) override;

  Result<void> rename(const Context& ctx, PathView from, PathView to) override;
  Result<void> replace(const Context& ctx, PathView from, PathView to) override;
  Result<WriteResult> copy(const Context& ctx, PathView from, PathView to) override;

  // As `rg` searches: hidden, ignored, binary and unreadable files are left out, UTF-16 with a mark is decoded.
  Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) override;

 private:
  struct Looked {
    struct stat status = {};
    bool via_symlink = false;
  };
  // A regular file that is open, and its state at that moment.
  struct OpenFile {
    OwnedFd fd;
    struct stat status = {};
    bool via_symlink = false;
  };

  LocalFileSystem(const LocalConfig& config, PosixFiles& files, LocalPaths paths, FileSystemTraits traits);

  // --- local_file_system.cc: reads ---
  Result<Looked> look(const Context& ctx, PathView path) const;
  // Errors: those of LocalPaths::open, is_a_directory, invalid_operation (a device, a socket).
  Result<OpenFile> open_file(const Context& ctx, PathView path, int flags) const;
  // Bytes [offset, offset + size) or fewer at the end. Errors: io, too_large (no memory for it).
  Result<Bytes> read_range(PathView path, int fd, uint64_t offset, uint64_t size) const;

  // --- local_writes.cc: one file ---
  Result<WriteResult> write_whole(const Context& ctx, PathView path, std::string_view data, WriteFlag flag);
  Result<WriteResult> write_in_place(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                     WriteFlag flag);
  // Replaces what stands at `target` by `data`. `exclusive`: already_exists when something does.
  Result<WriteResult> replace_content(PathView path, const Target& target, std::string_view data, bool exclusive);
  // May this process write over the existing `target`? Errors: is_a_directory, invalid_operation, permission_denied.
  Result<void> check_writable(PathView path, const Target& target) const;
  // Gives `temp` the owner and mode of what it replaces, times of now, and the name; syncs as configured.
  Result<WriteResult> publish(PathView path, const Target& target, TempFile& temp, uint64_t bytes, bool exclusive);
  // The state after a change in place, with a version that differs from the one before.
  Result<FileMeta> settle(PathView path, const OpenFile& file) const;
  // Locks the file at `path` against other compare_and_* and checks its content; nullopt when missing or different.
  struct Compared {
    Target target;
    OwnedFd fd;  // holds the lock
  };
  Result<std::optional<Compared>> lock_and_compare(const Context& ctx, PathView path, std::string_view expected) const;

  // --- local_trees.cc: names and directories ---
  // Copies `size` bytes of `from` into `to`. 0, a negated errno, or -ENODATA when the source ended early.
  int copy_bytes(int from, int to, uint64_t size) const;
  Result<void> fsync_dir(PathView path, int dir_fd) const;
  // Removes temporary files that a crash left in the directory; true when there were any.
  bool clear_stale_temps(int dir_fd, const char* name) const;
  // Everything below a directory. Errors: those of remove_all.
  Result<void> remove_below(const Context& ctx, PathView path);
  // The files of one directory; its directories are added to `subdirs`.
  Result<void> unlink_files(const Context& ctx, PathView dir_path, std::vector<Path>& subdirs);
  // The entry of something that exists, links not followed, and its status. Errors: not_found naming `path`.
  Result<NamedEntry> find_name(const Context& ctx, PathView path, struct stat& status) const;
  Result<void> rename_entry(PathView from, const NamedEntry& old_entry, const struct stat& source, PathView to,
                            const NamedEntry& new_entry);

  const LocalConfig config_;
  PosixFiles& files_;
  LocalPaths paths_;
  const FileSystemTraits traits_;
  mutable TempNames temp_names_;
};

}  // namespace ragfs
