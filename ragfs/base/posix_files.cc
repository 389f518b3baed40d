#include "ragfs/base/posix_files.h"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace ragfs {
namespace {

template <typename T>
T negated(T result) {
  return result < 0 ? static_cast<T>(-errno) : result;
}

class SystemFiles final : public PosixFiles {
 public:
  bool is_kernel() const override { return true; }
  int openat(int dir_fd, const char* path, int flags, mode_t mode) override {
    return negated(::openat(dir_fd, path, flags, mode));
  }
  int openat2(int dir_fd, const char* path, int flags, mode_t mode, uint64_t resolve) override {
    struct open_how how = {};
    how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags));
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = resolve;
    return static_cast<int>(negated(::syscall(SYS_openat2, dir_fd, path, &how, sizeof(how))));
  }
  int close(int fd) override { return negated(::close(fd)); }

  ssize_t pread(int fd, void* buffer, size_t size_bytes, off_t offset) override {
    return negated(::pread(fd, buffer, size_bytes, offset));
  }
  ssize_t write(int fd, const void* data, size_t size_bytes) override { return negated(::write(fd, data, size_bytes)); }
  ssize_t pwrite(int fd, const void* data, size_t size_bytes, off_t offset) override {
    return negated(::pwrite(fd, data, size_bytes, offset));
  }
  ssize_t copy_file_range(int fd_in, off_t* offset_in, int fd_out, size_t size_bytes) override {
    return negated(::copy_file_range(fd_in, offset_in, fd_out, nullptr, size_bytes, 0));
  }

  int fstat(int fd, struct stat* out) override { return negated(::fstat(fd, out)); }
  int fstatat(int dir_fd, const char* path, struct stat* out, int flags) override {
    return negated(::fstatat(dir_fd, path, out, flags));
  }
  int statx(int dir_fd, const char* path, int flags, unsigned mask, struct statx* out) override {
    return negated(::statx(dir_fd, path, flags, mask, out));
  }
  ssize_t getdents64(int fd, void* buffer, size_t size_bytes) override {
    return negated(::syscall(SYS_getdents64, fd, buffer, size_bytes));
  }
  int rewind(int fd) override { return ::lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0; }
  ssize_t readlinkat(int dir_fd, const char* path, char* buffer, size_t size_bytes) override {
    return negated(::readlinkat(dir_fd, path, buffer, size_bytes));
  }
  int faccessat(int dir_fd, const char* path, int mode, int flags) override {
    return negated(::faccessat(dir_fd, path, mode, flags));
  }

  int ftruncate(int fd, off_t size_bytes) override { return negated(::ftruncate(fd, size_bytes)); }
  int futimens(int fd, const struct timespec times[2]) override { return negated(::futimens(fd, times)); }
  int fchmod(int fd, mode_t mode) override { return negated(::fchmod(fd, mode)); }
  int fchown(int fd, uid_t user, gid_t group) override { return negated(::fchown(fd, user, group)); }
  int fdatasync(int fd) override { return negated(::fdatasync(fd)); }
  int fsync(int fd) override { return negated(::fsync(fd)); }
  int syncfs(int fd) override { return negated(::syncfs(fd)); }
  int fstatvfs(int fd, struct statvfs* out) override { return negated(::fstatvfs(fd, out)); }
  int try_lock(int fd, struct flock* lock) override { return negated(::fcntl(fd, F_OFD_SETLK, lock)); }

  int mkdirat(int dir_fd, const char* path, mode_t mode) override { return negated(::mkdirat(dir_fd, path, mode)); }
  int unlinkat(int dir_fd, const char* path, int flags) override { return negated(::unlinkat(dir_fd, path, flags)); }
  int linkat(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path) override {
    return negated(::linkat(old_dir_fd, old_path, new_dir_fd, new_path, 0));
  }
  int renameat2(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path, unsigned flags) override {
    return negated(::renameat2(old_dir_fd, old_path, new_dir_fd, new_path, flags));
  }
};

}  // namespace

PosixFiles& PosixFiles::system() {
  static SystemFiles files;  // no state
  return files;
}

}  // namespace ragfs
