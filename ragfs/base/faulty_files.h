// FaultyFiles: PosixFiles with faults, for tests.
//
// For: making the n-th call of a kind fail with an errno, move fewer bytes, or run a callback (to change a file in
// mid-operation), and counting calls. Not for: anything but tests. Faults match by call name and, where given, by a
// part of the path that the call or its descriptor was opened with.
// Thread-safety: all methods may be called from any thread; callbacks run without the lock.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/posix_files.h"
#include "ragfs/base/sync.h"

namespace ragfs {

class FaultyFiles final : public PosixFiles {
 public:
  // Which calls are hit and how: Fault("write", ENOSPC).on("name").after(2).times(1).
  struct Fault {
    // `call`: "pread", "openat2", "renameat2", ...; `error`: errno to fail with, 0 = the call runs.
    explicit Fault(std::string call_in, int error_in = 0) : call(std::move(call_in)), error(error_in) {}
    // Only calls whose path, or whose descriptor's path, contains this.
    Fault& on(std::string part) { return path_part = std::move(part), *this; }
    // Lets the first calls pass.
    Fault& after(int passing) { return skip = passing, *this; }
    // Hits this many calls (default 1); -1 = all.
    Fault& times(int hits) { return left = hits, *this; }
    // A transfer moves at most this.
    Fault& at_most(size_t bytes) { return max_bytes = bytes, *this; }
    // A write answers as if it had been made, and is not.
    Fault& drop() { return dropped = true, *this; }
    // Runs before the call.
    Fault& run(std::function<void()> action) { return before = std::move(action), *this; }

    std::string call;
    int error;
    std::string path_part;
    int skip = 0;
    int left = 1;
    size_t max_bytes = SIZE_MAX;
    bool dropped = false;
    std::function<void()> before;
  };

  explicit FaultyFiles(PosixFiles& real = PosixFiles::system()) : real_(real) {}

  void add(Fault fault) {
    const MutexLock lock(mutex_);
    faults_.push_back(std::move(fault));
  }
  void clear() {
    const MutexLock lock(mutex_);
    faults_.clear();
  }
  int calls(const std::string& call) {
    const MutexLock lock(mutex_);
    return counts_[call];
  }
  int all_calls() { return calls_except(""); }
  // At one moment: a difference of two counts would see a call that another thread makes between them.
  int calls_except(std::string_view left_out) {
    const MutexLock lock(mutex_);
    int sum = 0;
    for (const auto& [call, count] : counts_)
      if (call != left_out) sum += count;
    return sum;
  }
  void reset_calls() {
    const MutexLock lock(mutex_);
    counts_.clear();
  }
  size_t open_fds() {
    const MutexLock lock(mutex_);
    return paths_.size();
  }

  int openat(int dir_fd, const char* path, int flags, mode_t mode) override {
    if (const Hit hit = meet("openat", path); hit.error != 0) return hit.error;
    return opened(real_.openat(dir_fd, path, flags, mode), path);
  }
  int openat2(int dir_fd, const char* path, int flags, mode_t mode, uint64_t resolve) override {
    if (const Hit hit = meet("openat2", path); hit.error != 0) return hit.error;
    return opened(real_.openat2(dir_fd, path, flags, mode, resolve), path);
  }
  int close(int fd) override {
    const Hit hit = meet("close", path_of(fd));
    {
      const MutexLock lock(mutex_);
      paths_.erase(fd);
    }
    const int result = real_.close(fd);
    return hit.error != 0 ? hit.error : result;
  }

  ssize_t pread(int fd, void* buffer, size_t size_bytes, off_t offset) override {
    const Hit hit = meet("pread", path_of(fd));
    if (hit.error != 0) return hit.error;
    return real_.pread(fd, buffer, std::min(size_bytes, hit.max_bytes), offset);
  }
  ssize_t write(int fd, const void* data, size_t size_bytes) override {
    const Hit hit = meet("write", path_of(fd));
    if (hit.error != 0) return hit.error;
    if (hit.dropped) return static_cast<ssize_t>(size_bytes);
    return real_.write(fd, data, std::min(size_bytes, hit.max_bytes));
  }
  ssize_t pwrite(int fd, const void* data, size_t size_bytes, off_t offset) override {
    const Hit hit = meet("pwrite", path_of(fd));
    if (hit.error != 0) return hit.error;
    if (hit.dropped) return static_cast<ssize_t>(size_bytes);
    return real_.pwrite(fd, data, std::min(size_bytes, hit.max_bytes), offset);
  }
  ssize_t copy_file_range(int fd_in, off_t* offset_in, int fd_out, size_t size_bytes) override {
    const Hit hit = meet("copy_file_range", path_of(fd_in));
    if (hit.error != 0) return hit.error;
    return real_.copy_file_range(fd_in, offset_in, fd_out, std::min(size_bytes, hit.max_bytes));
  }

  int fstat(int fd, struct stat* out) override {
    if (const Hit hit = meet("fstat", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fstat(fd, out);
  }
  int fstatat(int dir_fd, const char* path, struct stat* out, int flags) override {
    if (const Hit hit = meet("fstatat", path); hit.error != 0) return hit.error;
    return real_.fstatat(dir_fd, path, out, flags);
  }
  int statx(int dir_fd, const char* path, int flags, unsigned mask, struct statx* out) override {
    if (const Hit hit = meet("statx", path); hit.error != 0) return hit.error;
    return real_.statx(dir_fd, path, flags, mask, out);
  }
  ssize_t getdents64(int fd, void* buffer, size_t size_bytes) override {
    if (const Hit hit = meet("getdents64", path_of(fd)); hit.error != 0) return hit.error;
    return real_.getdents64(fd, buffer, size_bytes);
  }
  int rewind(int fd) override {
    if (const Hit hit = meet("rewind", path_of(fd)); hit.error != 0) return hit.error;
    return real_.rewind(fd);
  }
  ssize_t readlinkat(int dir_fd, const char* path, char* buffer, size_t size_bytes) override {
    if (const Hit hit = meet("readlinkat", path); hit.error != 0) return hit.error;
    return real_.readlinkat(dir_fd, path, buffer, size_bytes);
  }
  int faccessat(int dir_fd, const char* path, int mode, int flags) override {
    if (const Hit hit = meet("faccessat", path); hit.error != 0) return hit.error;
    return real_.faccessat(dir_fd, path, mode, flags);
  }

  int ftruncate(int fd, off_t size_bytes) override {
    if (const Hit hit = meet("ftruncate", path_of(fd)); hit.error != 0) return hit.error;
    return real_.ftruncate(fd, size_bytes);
  }
  int futimens(int fd, const struct timespec times[2]) override {
    if (const Hit hit = meet("futimens", path_of(fd)); hit.error != 0) return hit.error;
    return real_.futimens(fd, times);
  }
  int fchmod(int fd, mode_t mode) override {
    if (const Hit hit = meet("fchmod", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fchmod(fd, mode);
  }
  int fchown(int fd, uid_t user, gid_t group) override {
    if (const Hit hit = meet("fchown", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fchown(fd, user, group);
  }
  int fdatasync(int fd) override {
    if (const Hit hit = meet("fdatasync", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fdatasync(fd);
  }
  int fsync(int fd) override {
    if (const Hit hit = meet("fsync", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fsync(fd);
  }
  int syncfs(int fd) override {
    if (const Hit hit = meet("syncfs", path_of(fd)); hit.error != 0) return hit.error;
    return real_.syncfs(fd);
  }
  int fstatvfs(int fd, struct statvfs* out) override {
    if (const Hit hit = meet("fstatvfs", path_of(fd)); hit.error != 0) return hit.error;
    return real_.fstatvfs(fd, out);
  }
  int try_lock(int fd, struct flock* lock) override {
    if (const Hit hit = meet("try_lock", path_of(fd)); hit.error != 0) return hit.error;
    return real_.try_lock(fd, lock);
  }

  int mkdirat(int dir_fd, const char* path, mode_t mode) override {
    if (const Hit hit = meet("mkdirat", path); hit.error != 0) return hit.error;
    return real_.mkdirat(dir_fd, path, mode);
  }
  int unlinkat(int dir_fd, const char* path, int flags) override {
    if (const Hit hit = meet("unlinkat", path); hit.error != 0) return hit.error;
    return real_.unlinkat(dir_fd, path, flags);
  }
  int linkat(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path) override {
    if (const Hit hit = meet("linkat", new_path); hit.error != 0) return hit.error;
    return real_.linkat(old_dir_fd, old_path, new_dir_fd, new_path);
  }
  int renameat2(int old_dir_fd, const char* old_path, int new_dir_fd, const char* new_path, unsigned flags) override {
    if (const Hit hit = meet("renameat2", new_path); hit.error != 0) return hit.error;
    return real_.renameat2(old_dir_fd, old_path, new_dir_fd, new_path, flags);
  }

 private:
  struct Hit {
    int error = 0;  // negated errno
    size_t max_bytes = SIZE_MAX;
    bool dropped = false;
  };

  Hit meet(const std::string& call, const std::string& path) {
    Hit hit;
    std::function<void()> before;
    {
      const MutexLock lock(mutex_);
      ++counts_[call];
      for (Fault& fault : faults_) {
        if (fault.call != call || path.find(fault.path_part) == std::string::npos) continue;
        if (fault.skip > 0) {
          --fault.skip;
          continue;
        }
        if (fault.left == 0) continue;
        if (fault.left > 0) --fault.left;
        hit.error = -fault.error;
        hit.max_bytes = fault.max_bytes;
        hit.dropped = fault.dropped;
        before = fault.before;
        break;
      }
    }
    if (before) before();
    return hit;
  }
  int opened(int fd, const char* path) {
    const MutexLock lock(mutex_);
    if (fd >= 0) paths_[fd] = path;
    return fd;
  }
  std::string path_of(int fd) {
    const MutexLock lock(mutex_);
    const auto found = paths_.find(fd);
    return found == paths_.end() ? std::string() : found->second;
  }

  PosixFiles& real_;
  Mutex mutex_;
  std::vector<Fault> faults_ RAGFS_GUARDED_BY(mutex_);
  std::map<std::string, int> counts_ RAGFS_GUARDED_BY(mutex_);
  std::map<int, std::string> paths_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
