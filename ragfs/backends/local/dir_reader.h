// DirReader: the names in an open directory, one by one.
//
// For: listings and removals that work on directories of any size with a fixed buffer. "." and ".." are left out; names
// are bytes as the kernel gives them. Not for: sizes and times (fstatat).
// Thread-safety: one object belongs to one thread.
#pragma once

#include <memory>

#include "ragfs/base/posix_files.h"

namespace ragfs {

class DirReader {
 public:
  // `dir_fd` was opened for reading, and outlives the object.
  DirReader(PosixFiles& files, int dir_fd);

  // The next name, valid until the next call; nullptr at the end or on an error, which error() tells then.
  const char* next();
  int error() const { return error_; }  // 0 or a negated errno

 private:
  PosixFiles& files_;
  const int dir_fd_;
  std::unique_ptr<char[]> buffer_;
  size_t filled_ = 0;
  size_t at_ = 0;
  int error_ = 0;
};

}  // namespace ragfs
