#include "ragfs/server/file_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace ragfs::server {

FileSource::FileSource(FileSystem& fs, Context context, int64_t timeout_ms, Path path, uint64_t offset,
                       std::optional<uint64_t> left)
    : fs_(fs),
      context_(std::move(context)),
      timeout_ms_(timeout_ms),
      path_(std::move(path)),
      offset_(offset),
      left_(left) {}

Result<std::string> FileSource::state() const {
  auto version = fs_.version(context_, path_);
  if (version && !version->empty()) return version;
  Context past_cache = context_;
  past_cache.bypass_cache = true;
  const auto info = fs_.stat(past_cache, path_);
  if (!info) return std::unexpected(info.error());
  return fmt::format("{} {}", info->size, info->mtime_ns);
}

Result<Bytes> FileSource::next() {
  if (left_ == 0) return Bytes();
  context_.deadline = Deadline::in_ms(timeout_ms_);
  if (!first_) {
    auto before = state();
    if (!before) return std::unexpected(before.error());
    first_ = std::move(*before);
  }
  const uint64_t wanted = std::min(kPartBytes, left_.value_or(kPartBytes));
  auto part = fs_.read(context_, path_, offset_, wanted);
  if (!part) return part;
  const auto after = state();
  if (!after) return std::unexpected(after.error());
  if (*after != *first_) return fail(ErrorCode::io, path_.text() + ": changed while it was sent");
  if (part->empty() && left_.value_or(0) > 0) return fail(ErrorCode::io, path_.text() + ": ended early");
  offset_ += part->size();
  if (left_) *left_ -= std::min<uint64_t>(*left_, part->size());
  return part;
}

}  // namespace ragfs::server
