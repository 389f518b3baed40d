#include "ragfs/store/disk/disk_io.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>

#include "ragfs/store/disk/bucket_format.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {

namespace {

constexpr size_t kMostTransferBytes = size_t{1} << 30;

struct Dirent64 {  // what getdents64 fills in
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

}  // namespace

template <typename Call>
auto DiskIo::made(DiskOp op, std::string_view name, Call call) -> decltype(call()) {
  decltype(call()) result = -ECANCELED;
  under_way_.fetch_add(1);
  if (!fence_.fenced() || !fence_rule(FenceRule::kReadsStop)) {
    const HangWatch::Call watched(watch_, clock_);
    result = retry_interrupted(call);
    note(op, result, name);
  }
  under_way_.fetch_sub(1);
  return result;
}

void DiskIo::note(DiskOp op, ssize_t result, std::string_view name) {
  if (result >= 0) return;
  errors_[static_cast<size_t>(op)].fetch_add(1, std::memory_order_relaxed);
  fence_.report(op, static_cast<int>(-result), name);
}

class DiskIo::RingRead final : public PendingRead {
 public:
  RingRead(DiskIo& io, std::string_view name, std::shared_ptr<void> keep)
      : io_(io), name_(name), keep_(std::move(keep)), watched_(io.watch_, io.clock_) {}
  void came_back(ssize_t result) override { io_.note(DiskOp::read, result, name_); }

 private:
  DiskIo& io_;
  const std::string name_;
  const std::shared_ptr<void> keep_;
  const HangWatch::Call watched_;
};

RingPool::Outcome DiskIo::read_within(RingPool& rings, int fd, char* buffer, unsigned bytes, uint64_t offset,
                                      std::string_view name, std::shared_ptr<void> keep, Deadline deadline,
                                      ssize_t& got) {
  got = -ECANCELED;
  if (fence_.fenced() && fence_rule(FenceRule::kReadsStop)) return RingPool::Outcome::done;
  const auto read = std::make_shared<RingRead>(*this, name, std::move(keep));
  const RingPool::Outcome outcome = rings.read(fd, buffer, bytes, offset, read, deadline, got);
  if (outcome == RingPool::Outcome::done) note(DiskOp::read, got, name);
  return outcome;
}

int DiskIo::open_directory(const std::string& path) {
  const int fd = made(DiskOp::open, path,
                      [&] { return files_.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (fd < 0) return fd;
  directory_ = OwnedFd(files_, fd);
  return 0;
}

int DiskIo::open(const std::string& name, int flags, OwnedFd& fd) {
  const int opened = made(DiskOp::open, name, [&] {
    return files_.openat(directory_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
  });
  if (opened < 0) return opened;
  fd = OwnedFd(files_, opened);
  return 0;
}

ssize_t DiskIo::read(int fd, char* buffer, size_t bytes, uint64_t offset, std::string_view name) {
  size_t done = 0;
  while (done < bytes) {
    const size_t want = std::min(bytes - done, kMostTransferBytes);
    const ssize_t got = made(DiskOp::read, name,
                             [&] { return files_.pread(fd, buffer + done, want, static_cast<off_t>(offset + done)); });
    if (got < 0) return got;
    done += static_cast<size_t>(got);
    // The end of the file; or direct I/O that stopped inside a block and cannot go on from there.
    if (got == 0 || done % kBlockBytes != 0) break;
  }
  return static_cast<ssize_t>(done);
}

ssize_t DiskIo::write(int fd, std::string_view data, uint64_t offset, std::string_view name) {
  size_t done = 0;
  while (done < data.size()) {
    const size_t want = std::min(data.size() - done, kMostTransferBytes);
    const ssize_t put = made(DiskOp::write, name, [&] {
      return files_.pwrite(fd, data.data() + done, want, static_cast<off_t>(offset + done));
    });
    if (put < 0) return put;
    done += static_cast<size_t>(put);
    if (put == 0 || (done < data.size() && done % kBlockBytes != 0)) break;
  }
  return static_cast<ssize_t>(done);
}

ssize_t DiskIo::append(int fd, std::string_view data, std::string_view name) {
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t put =
        made(DiskOp::write, name, [&] { return files_.write(fd, data.data() + done, data.size() - done); });
    if (put < 0) return put;
    if (put == 0) break;
    done += static_cast<size_t>(put);
  }
  return static_cast<ssize_t>(done);
}

int DiskIo::fdatasync(int fd, std::string_view name) {
  return made(DiskOp::fdatasync, name, [&] { return files_.fdatasync(fd); });
}

int DiskIo::fsync(int fd, std::string_view name) {
  return made(DiskOp::fsync, name, [&] { return files_.fsync(fd); });
}

int DiskIo::fsync_directory() {
  return made(DiskOp::fsync, ".", [&] { return files_.fsync(directory_.get()); });
}

int DiskIo::rename(const std::string& from, const std::string& to) {
  return made(DiskOp::rename, to,
              [&] { return files_.renameat2(directory_.get(), from.c_str(), directory_.get(), to.c_str(), 0); });
}

int DiskIo::unlink(const std::string& name) {
  return made(DiskOp::unlink, name, [&] { return files_.unlinkat(directory_.get(), name.c_str(), 0); });
}

int DiskIo::close(OwnedFd& fd, std::string_view name) {
  const int result = fd.close();
  note(DiskOp::close, result, name);
  return result;
}

int DiskIo::list(std::vector<std::string>& names) {
  OwnedFd fd;
  const int opened = made(DiskOp::open, ".",
                          [&] { return files_.openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (opened < 0) return opened;
  fd = OwnedFd(files_, opened);
  alignas(8) char buffer[1 << 15];
  while (true) {
    const ssize_t got = made(DiskOp::list, ".", [&] { return files_.getdents64(fd.get(), buffer, sizeof buffer); });
    if (got < 0) return static_cast<int>(got);
    if (got == 0) return 0;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Dirent64*>(buffer + at);
      const std::string_view name(static_cast<const char*>(entry->name));
      if (name != "." && name != "..") names.emplace_back(name);
      at += entry->length;
    }
  }
}

int DiskIo::size_of(const std::string& name, uint64_t& bytes) {
  struct stat found;
  const int result = made(DiskOp::stat, name,
                          [&] { return files_.fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW); });
  if (result == 0) bytes = static_cast<uint64_t>(found.st_size);
  return result;
}

int DiskIo::read_file(const std::string& name, size_t most_bytes, std::string& out) {
  uint64_t size = 0;
  if (const int result = size_of(name, size); result < 0) return result;
  if (size > most_bytes) return -EFBIG;
  OwnedFd fd;
  if (const int result = open(name, O_RDONLY, fd); result < 0) return result;
  out.resize(size);
  const ssize_t got = read(fd.get(), out.data(), size, 0, name);
  if (got < 0) return static_cast<int>(got);
  out.resize(static_cast<size_t>(got));
  return 0;
}

int DiskIo::free_bytes(uint64_t& bytes) {
  struct statvfs found;
  const int result = made(DiskOp::stat, "statvfs", [&] { return files_.fstatvfs(directory_.get(), &found); });
  if (result == 0) bytes = uint64_t{found.f_bavail} * found.f_frsize;
  return result;
}

int DiskIo::try_lock(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return retry_interrupted([&] { return files_.try_lock(fd, &lock); });
}

int DiskIo::replace_file(const std::string& name, const std::string& temporary, std::string_view data) {
  OwnedFd fd;
  int result = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, fd);
  if (result < 0) return result;
  const ssize_t put = write(fd.get(), data, 0, temporary);
  if (put < 0) result = static_cast<int>(put);
  if (result == 0 && static_cast<size_t>(put) < data.size()) result = -ENOSPC;
  if (result == 0) result = fsync(fd.get(), temporary);
  const int closed = close(fd, temporary);
  if (result == 0) result = closed;
  if (result == 0) result = rename(temporary, name);
  if (result == 0) result = fsync_directory();
  if (result < 0) unlink(temporary);
  return result;
}

}  // namespace ragfs
