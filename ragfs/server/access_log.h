// AccessLog: one JSON line for each request, without secrets.
//
// Headers, bodies and queries never get into it; of a query only the path of the tree. Lines are buffered and written
// by the caller of flush(); past kMaxBuffered they are dropped and counted. Thread-safety: all methods may be called
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"

namespace ragfs::server {

struct AccessEntry {
  std::string remote;
  std::string account;
  size_t caller = 0;  // number of the token; 0 = none
  std::string method;
  std::string route;  // the target's path
  std::string path;   // of the tree
  unsigned status = 0;
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  int64_t took_ns = 0;
  bool complete = true;  // the whole answer was handed to the client
};

class AccessLog {
 public:
  static constexpr size_t kMaxBuffered_bytes = 4 << 20;

  // `file`: "" = no log, "-" = standard error. Errors: those of opening it.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& file);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  bool enabled() const { return fd_ >= 0; }
  void add(const AccessEntry& entry);
  // Writes what is buffered.
  void flush();
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  AccessLog(int fd, bool owned) : fd_(fd), owned_(owned) {}

  const int fd_;
  const bool owned_;
  std::atomic<uint64_t> lost_{0};
  Mutex mutex_;
  std::string buffer_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::server
