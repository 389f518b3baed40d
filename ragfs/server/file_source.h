// FileSource: a file's bytes in parts, for answers that are too large to hold.
//
// All parts are of one version of the file: when it changed since the first, next() fails and the client sees an answer
// that is cut off, never a mixture. Thread-safety: not synchronised.
#pragma once

#include <optional>

#include "ragfs/fs/file_system.h"
#include "ragfs/server/http_message.h"

namespace ragfs::server {

class FileSource final : public BodySource {
 public:
  static constexpr uint64_t kPartBytes = 256 << 10;

  // `left` = bytes from offset on; absent = to the end of the file. `timeout_ms` is for each part.
  FileSource(FileSystem& fs, Context context, int64_t timeout_ms, Path path, uint64_t offset,
             std::optional<uint64_t> left);

  Result<Bytes> next() override;

 private:
  // What tells one state of the file from another.
  Result<std::string> state() const;

  FileSystem& fs_;
  Context context_;
  const int64_t timeout_ms_;
  const Path path_;
  uint64_t offset_;
  std::optional<uint64_t> left_;
  std::optional<std::string> first_;
};

}  // namespace ragfs::server
