#include "ragfs/base/file_io.h"

#include <algorithm>

namespace ragfs {
namespace {

// The kernel cuts longer transfers itself; whole MiBs keep the rest aligned.
constexpr size_t kMaxTransferBytes = 1UL << 30;

template <typename Call>
WriteProgress write_loop(std::string_view data, Call call) {
  WriteProgress progress;
  while (progress.written < data.size()) {
    const size_t size = std::min(data.size() - progress.written, kMaxTransferBytes);
    const ssize_t wrote = call(data.data() + progress.written, size, progress.written);
    if (wrote == -EINTR) continue;
    // A write of something that takes nothing and names no error would loop for ever.
    progress.error = wrote == 0 ? -EIO : wrote < 0 ? static_cast<int>(wrote) : 0;
    if (progress.error != 0) return progress;
    progress.written += static_cast<size_t>(wrote);
  }
  return progress;
}

}  // namespace

ssize_t pread_fully(PosixFiles& files, int fd, char* buffer, size_t size_bytes, off_t offset) {
  size_t done = 0;
  while (done < size_bytes) {
    const size_t size = std::min(size_bytes - done, kMaxTransferBytes);
    const ssize_t got = files.pread(fd, buffer + done, size, offset + static_cast<off_t>(done));
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

WriteProgress write_fully(PosixFiles& files, int fd, std::string_view data) {
  return write_loop(data, [&](const char* from, size_t size, size_t /*done*/) { return files.write(fd, from, size); });
}

WriteProgress pwrite_fully(PosixFiles& files, int fd, std::string_view data, off_t offset) {
  return write_loop(data, [&](const char* from, size_t size, size_t done) {
    return files.pwrite(fd, from, size, offset + static_cast<off_t>(done));
  });
}

}  // namespace ragfs
