// Temporary files of localfs: what a whole-file write fills before it takes its name by rename.
//
// A temporary file stands in the directory of its target, so that the rename stays in one file system. Its name has a
// fixed length, whatever the target is called, and tells who made it:
//   .ragfs-tmp-{8 hex: machine and pid namespace}-{8 hex: pid}-{16 hex: this object and a counter}
// Names of exactly this form are never listed, and cannot be read or written by users.
// Not for: temporary directories.
//
// Thread-safety: TempNames may be used from any thread; a TempFile belongs to one.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "ragfs/base/file_io.h"
#include "ragfs/base/path.h"

namespace ragfs {

class TempNames {
 public:
  TempNames();
  // A name that no other call anywhere returns.
  std::string next();

  // Whether `name` has the form of a temporary file's name.
  static bool is_temp(std::string_view name) noexcept;
  // Whether a component of `path` is one.
  static bool in_path(PathView path) noexcept;
  // Whether a temporary file was left behind by a crash: its process of this machine is gone, or it is older than
  // `stale_age_ns`. `name` must be is_temp().
  bool is_stale(std::string_view name, int64_t mtime_ns, int64_t now_ns, int64_t stale_age_ns) const;

 private:
  std::string machine_;  // 8 hex digits
  uint32_t object_;
  std::atomic<uint32_t> counter_{0};
};

// Removes its file when destroyed before it was renamed.
class TempFile {
 public:
  // A new file in the directory `dir_fd`, which must outlive the object. On failure fd() is the negated errno.
  TempFile(PosixFiles& files, TempNames& names, int dir_fd, mode_t mode);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  // The descriptor, or a negated errno.
  int fd() const { return error_ != 0 ? error_ : fd_.get(); }
  // Gives the file its name, replacing what has it; with `exclusive` answers -EEXIST instead. 0 or a negated errno.
  int take_name(const char* name, bool exclusive);
  int close() { return fd_.close(); }

 private:
  PosixFiles& files_;
  const int dir_fd_;
  std::string temp_name_;  // "" once renamed
  OwnedFd fd_;
  int error_ = 0;
};

}  // namespace ragfs
