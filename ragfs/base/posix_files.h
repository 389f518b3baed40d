// PosixFiles: the system calls on files, behind a seam.
//
// For: code that keeps data on a disk, so that tests inject EIO, ENOSPC, EINTR and short transfers where the kernel
// would give them (faulty_files.h). One method is one system call: nothing is retried or looped here (file_io.h does).
// Every method returns what the call returns, or the negated errno; nothing sets or reads the caller's errno.
// Not for: sockets, pipes, memory maps.
//
// Thread-safety: all methods may be called from any thread. Descriptors belong to the caller.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ragfs {

class PosixFiles {
 public:
  virtual ~PosixFiles() = default;

  // True where descriptors may also be used past this seam (io_uring).
  virtual bool is_kernel() const { return false; }

  virtual int openat(int dir_fd, const char* path, int flags, mode_t mode) = 0;
  // `resolve`: RESOLVE_* of <linux/openat2.h>.
  virtual int openat2(int dir_fd, const char* path, int flags, mode_t mode, uint64_t resolve) = 0;
  virtual int close(int fd) = 0;

  virtual ssize_t pread(int fd, void* buffer, size_t size_bytes, off_t offset) = 0;
  virtual ssize_t write(int fd, const void* data, size_t size_bytes) = 0;
  virtual ssize_t pwrite(int fd, const void* data, size_t size_bytes, off_t offset) = 0;
  // `offset_in` is advanced; the output goes to the descriptor's own position.
  virtual ssize_t copy_file_range(int fd_in, off_t* offset_in, int fd_out, size_t size_bytes) = 0;

  virtual int fstat(int fd, struct stat* out) = 0;
  virtual int fstatat(int dir_fd, const char* path, struct stat* out, int flags) = 0;
  virtual int statx(int dir_fd, const char* path, int flags, unsigned mask, struct statx* out) = 0;
  virtual ssize_t getdents64(int fd, void* buffer, size_t size_bytes) = 0;
  // To the start, to list a directory again.
  virtual int rewind(int fd) = 0;
  virtual ssize_t readlinkat(int dir_fd, const char* path, char* buffer, size_t size_bytes) = 0;
  virtual int faccessat(int dir_fd, const char* path, int mode, int flags) = 0;

  virtual int ftruncate(int fd, off_t size_bytes) = 0;
  // {access time, modification time}, as utimensat takes them.
  virtual int futimens(int fd, const struct timespec times[2]) = 0;
  virtual int fchmod(int fd, mode_t mode) = 0;
  virtual int fchown(int fd, uid_t user, gid_t group) = 0;
  virtual int fdatasync(int fd) = 0;
  virtual int fsync(int fd) = 0;
  // All of the file system that holds `fd`.
  virtual int syncfs(int fd) = 0;
  virtual int fstatvfs(int fd, struct statvfs* out) = 0;
  // F_OFD_SETLK: never waits.
  virtual int try_lock(int fd, struct flock* lock) = 0;

  virtual int mkdirat(int dir_fd, const char* path, mode_t mode) = 0;
  virtual int unlinkat(int dir_fd, const char* path, int flags) = 0;
  virtual int linkat(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path) = 0;
  virtual int renameat2(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path, unsigned flags) = 0;

  // The kernel's; lives as long as the process.
  static PosixFiles& system();
};

}  // namespace ragfs
