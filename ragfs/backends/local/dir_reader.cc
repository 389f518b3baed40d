#include "ragfs/backends/local/dir_reader.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ragfs {
namespace {

constexpr size_t kBufferBytes = size_t{32} << 10;

// The kernel's record, which no header gives to programs.
struct Record {
  uint64_t inode;
  int64_t offset;
  uint16_t record_bytes;
  uint8_t type;
  char name[1];
};
constexpr size_t kNameAt = offsetof(Record, name);

}  // namespace

DirReader::DirReader(PosixFiles& files, int dir_fd)
    : files_(files), dir_fd_(dir_fd), buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {}

const char* DirReader::next() {
  while (true) {
    if (at_ == filled_) {
      ssize_t got = files_.getdents64(dir_fd_, buffer_.get(), kBufferBytes);
      while (got == -EINTR) got = files_.getdents64(dir_fd_, buffer_.get(), kBufferBytes);
      if (got <= 0) {
        error_ = static_cast<int>(got);
        return nullptr;
      }
      filled_ = static_cast<size_t>(got);
      at_ = 0;
    }
    const char* const record = buffer_.get() + at_;
    uint16_t record_bytes = 0;
    std::memcpy(&record_bytes, record + offsetof(Record, record_bytes), sizeof(record_bytes));
    at_ += record_bytes;
    const char* const name = record + kNameAt;
    if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) return name;
  }
}

}  // namespace ragfs
