// LocalPaths: from a path of the tree to a descriptor below the root directory, and never outside it.
//
// How. Every look-up starts at a held descriptor of the root. The first try forbids symlinks, which is what nearly
// every path needs and costs one system call. Only when a symlink is met is the path resolved again with the kernel's
// RESOLVE_BENEATH; and where an absolute link was met, the place it leads to is checked to lie below the root and
// opened from there without links. A link that leaves the root is permission_denied, a dangling one not_found, a loop
// invalid_path. Nothing is cached, so renames by others are seen.
// Not for: opening by host path. Needs Linux 5.6 (openat2).
//
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <string>

#include "ragfs/base/context.h"
#include "ragfs/base/file_io.h"
#include "ragfs/base/path.h"

namespace ragfs {

// The path as a C string relative to the root: "a/b", "." for the root. Lives on the stack.
class RelativePath {
 public:
  explicit RelativePath(PathView path) noexcept;
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[kMaxPathBytes + 1];
};

struct OpenedPath {
  OwnedFd fd;
  bool via_symlink = false;
};

// A name in an open directory.
struct NamedEntry {
  int dir_fd = -1;    // valid while this object and the LocalPaths live
  OwnedFd dir_owned;  // empty when dir_fd is the root's
  std::string name;
  bool via_symlink = false;
};

// What stands at the end of a path, links followed.
struct Target {
  NamedEntry entry;
  bool exists = false;
  struct stat status = {};  // of the file itself, never of a link; only when it exists
};

class LocalPaths {
 public:
  // Errors: plugin (missing or not a directory, in the words of the RAGFS interface), not_supported (old kernel).
  static Result<LocalPaths> open(PosixFiles& files, const std::string& root_dir);

  int root_fd() const { return root_.get(); }
  // The root's name on the host, as it was when opened; then that of any path.
  const std::string& root_dir() const { return root_dir_; }
  std::string host_path(PathView path) const;

  // The look-ups set ctx.via_symlink when they went through a link.

  // Opens what `path` leads to. `flags`: O_RDONLY, O_WRONLY, O_PATH, O_DIRECTORY...; never O_CREAT.
  // Errors: not_found (also below a file), permission_denied, invalid_path (loop), is_a_directory, not_a_directory
  // (with O_DIRECTORY).
  Result<OpenedPath> open(const Context& ctx, PathView path, int flags) const;
  // The directory that holds `path`, whether or not `path` exists. A link at its end is not followed.
  // Errors: not_found and not_a_directory naming the parent; invalid_operation for the root; invalid_path for the name
  // of a temporary file.
  Result<NamedEntry> open_parent(const Context& ctx, PathView path) const;
  // As open_parent, but with a link at the end of `path` followed: what a write must replace.
  // Errors: also is_a_directory for the root, not_found for a dangling link.
  Result<Target> find_target(const Context& ctx, PathView path) const;

  // Where `path` leads, as a path without links. Errors: those of open().
  Result<Path> real_path(const Context& ctx, PathView path) const;

  // The Error of a failed look-up of `path`. not_found only while the root itself is there.
  Error lookup_error(int negated_errno, PathView path) const;

 private:
  LocalPaths(PosixFiles& files, OwnedFd root, std::string root_dir)
      : files_(&files), root_(std::move(root)), root_dir_(std::move(root_dir)) {}
  int open_following(const char* relative, int flags) const;
  int open_absolute_link(const char* relative, int flags) const;
  // Host name of an open descriptor. 0, or a negated errno; -EXDEV where it cannot be had (/proc is not mounted).
  int name_of(int fd, std::string& name) const;
  // Where an open descriptor is, relative to the root ("" = the root). 0, -EXDEV when outside, or a negated errno.
  int place_of(int fd, std::string& relative) const;

  PosixFiles* files_;
  OwnedFd root_;
  std::string root_dir_;
};

}  // namespace ragfs
