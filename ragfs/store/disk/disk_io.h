// DiskIo: the one way from the disk tier to the system calls of its directory.
//
// Every call is refused with -ECANCELED once the directory is fenced, so that nothing reaches a dead device; is known
// to the HangWatch while it runs; and, when it fails, is reported to the fence with its op and errno and counted. Names
// are relative to the directory. Results are 0 or a byte count, or the negated errno. A transfer that stops short
// answers what it moved: a logical error, not one of the disk. Not for: the fence's own check. Thread-safety: all
// methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/file_io.h"
#include "ragfs/store/disk/disk_fence.h"
#include "ragfs/store/disk/hang_watch.h"
#include "ragfs/store/disk/ring_pool.h"

namespace ragfs {

class DiskIo {
 public:
  DiskIo(PosixFiles& files, DiskFence& fence, HangWatch& watch, const Clock& clock)
      : files_(files), fence_(fence), watch_(watch), clock_(clock) {}

  // Opens the directory itself. Errors: negated errno.
  int open_directory(const std::string& path);
  // Gives up the directory's descriptor, after a fence: unless calls that began before it are under way; then the
  // caller comes again.
  void close_directory() {
    // A call that counts itself in after this sees the fence.
    if (under_way_.fetch_add(0) == 0) directory_.close();
  }

  // `fd` is set when 0 is returned.
  int open(const std::string& name, int flags, OwnedFd& fd);
  ssize_t read(int fd, char* buffer, size_t bytes, uint64_t offset, std::string_view name);
  // A read by one of the rings; `keep` keeps the buffer. The result is in `got`, unless the outcome says otherwise.
  RingPool::Outcome read_within(RingPool& rings, int fd, char* buffer, unsigned bytes, uint64_t offset,
                                std::string_view name, std::shared_ptr<void> keep, Deadline deadline, ssize_t& got);
  bool is_kernel() const { return files_.is_kernel(); }
  // Bytes written; fewer than data.size() is a short write.
  ssize_t write(int fd, std::string_view data, uint64_t offset, std::string_view name);
  // At the end of a file that was opened with O_APPEND.
  ssize_t append(int fd, std::string_view data, std::string_view name);
  int fdatasync(int fd, std::string_view name);
  int fsync(int fd, std::string_view name);
  int fsync_directory();
  int rename(const std::string& from, const std::string& to);
  int unlink(const std::string& name);
  int close(OwnedFd& fd, std::string_view name);
  // All names but "." and "..".
  int list(std::vector<std::string>& names);
  // The whole of a file of at most `most_bytes`; -EFBIG when it is longer.
  int read_file(const std::string& name, size_t most_bytes, std::string& out);
  int size_of(const std::string& name, uint64_t& bytes);
  // Bytes that an ordinary user may still write to the file system.
  int free_bytes(uint64_t& bytes);
  // F_OFD_SETLK for writing; never waits.
  int try_lock(int fd);
  // Writes `data` to a new file and renames it to `name`: it is there whole and on the disk, or as before.
  int replace_file(const std::string& name, const std::string& temporary, std::string_view data);

  uint64_t errors(DiskOp op) const { return errors_[static_cast<size_t>(op)].load(std::memory_order_relaxed); }

 private:
  class RingRead;
  void note(DiskOp op, ssize_t result, std::string_view name);
  // Runs `call` under the watch and reports what it answers.
  template <typename Call>
  auto made(DiskOp op, std::string_view name, Call call) -> decltype(call());

  PosixFiles& files_;
  DiskFence& fence_;
  HangWatch& watch_;
  const Clock& clock_;
  OwnedFd directory_;
  std::array<std::atomic<uint64_t>, kDiskOpCount> errors_{};
  std::atomic<int> under_way_{0};
};

}  // namespace ragfs
