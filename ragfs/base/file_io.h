// OwnedFd and the loops around single system calls.
//
// For: what every user of PosixFiles would otherwise repeat: closing descriptors, going on after EINTR and after short
// transfers (one call moves at most 2,147,479,552 bytes). Results are byte counts or negated errnos, as in PosixFiles.
// Not for: turning an errno into an Error (error_from_errno does, with the path the caller knows).
// Thread-safety: an OwnedFd belongs to one thread at a time; the functions have no state.
#pragma once

#include <cerrno>
#include <string_view>
#include <utility>

#include "ragfs/base/posix_files.h"

namespace ragfs {

// Closes its descriptor when destroyed.
class OwnedFd {
 public:
  OwnedFd() = default;
  OwnedFd(PosixFiles& files, int fd) : files_(&files), fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : files_(other.files_), fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      close();
      files_ = other.files_;
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~OwnedFd() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // 0, or the negated errno (delayed write errors of network file systems come here); -EINTR counts as closed.
  int close() {
    if (fd_ < 0) return 0;
    const int result = files_->close(std::exchange(fd_, -1));
    return result == -EINTR ? 0 : result;
  }
  // Leaves it open: it is somebody else's from here on.
  int release() { return std::exchange(fd_, -1); }

 private:
  PosixFiles* files_ = nullptr;
  int fd_ = -1;
};

// Repeats `call` while it answers -EINTR.
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

// Reads up to `size_bytes` at `offset`; fewer only at the end of the file.
ssize_t pread_fully(PosixFiles& files, int fd, char* buffer, size_t size_bytes, off_t offset);

struct WriteProgress {
  int error = 0;       // negated errno, 0 = all written
  size_t written = 0;  // bytes that the kernel took
};
// At the descriptor's position.
WriteProgress write_fully(PosixFiles& files, int fd, std::string_view data);
WriteProgress pwrite_fully(PosixFiles& files, int fd, std::string_view data, off_t offset);

}  // namespace ragfs
