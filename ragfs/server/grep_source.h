// GrepSource: the matches of a search as lines of JSON, made while they are sent.
//
// The search pushes its matches and the connection pulls them, so it has a thread of its own and a bounded buffer
// between: when the client is slow the search waits, and gives up after `stall_ms`. Bounded in number by its maker.
// Thread-safety: next() from one thread at a time.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "ragfs/base/sync.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/server/http_message.h"

namespace ragfs::server {

// {"file": absolute path, "line", "content", "metadata"?} of a match below `root`, and its size in bytes.
std::string grep_line(PathView root, const GrepMatch& match);

class GrepSource final : public BodySource {
 public:
  static constexpr size_t kBufferBytes = 1 << 20;
  static constexpr int kMaxSearches = 8;

  // `running` counts searches; the maker has added this one, its end takes it off.
  GrepSource(FileSystem& fs, Context context, Path root, GrepOptions options, int64_t stall_ms,
             std::atomic<int>& running);
  // Ends the search.
  ~GrepSource() override;

  Result<Bytes> next() override;

 private:
  void run();
  bool push(std::string line);

  FileSystem& fs_;
  const Context context_;
  const Path root_;
  const GrepOptions options_;
  const int64_t stall_ms_;
  std::atomic<int>& running_;

  Mutex mutex_;
  CondVar changed_;
  std::string buffer_ RAGFS_GUARDED_BY(mutex_);
  uint64_t count_ RAGFS_GUARDED_BY(mutex_) = 0;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  bool done_ RAGFS_GUARDED_BY(mutex_) = false;
  Result<void> outcome_ RAGFS_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace ragfs::server
