// DiskTier: removing the bytes of chosen keys for good.
//
// A tombstone makes a copy unreachable, but its bytes stay until their bucket is evicted. Whoever asks for a purge
// wants them gone: so whole buckets go, found by their bytes, not by the index, which does not know the dead copies
// that a data file still holds. A key that only looks like one of them, inside a value, costs some objects their place
// in the cache.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

bool contains_any(std::string_view bytes, std::span<const std::string> texts) {
  return std::ranges::any_of(texts, [&](const std::string& text) {
    const std::boyer_moore_horspool_searcher searcher(text.begin(), text.end());
    return std::search(bytes.begin(), bytes.end(), searcher) != bytes.end();
  });
}

}  // namespace

Result<bool> DiskTier::holds_any(const Bucket& bucket, std::span<const std::string> prefixes, Deadline deadline) {
  int result = 0;
  const std::shared_ptr<OwnedFd> fd = buckets_->descriptor(bucket, result);
  // Evicted meanwhile: its file is gone.
  if (fd == nullptr && (result == -ENOENT || bucket.gone.load())) return false;
  const std::string name = bucket_data_name(bucket.id);
  const auto unreadable = [&](int error) {
    return fail(ErrorCode::io, fmt::format("{}/{} cannot be read ({})", config_.directory, name, errno_name(error)));
  };
  if (fd == nullptr) return unreadable(-result);
  // The end of one chunk is the begin of the next: a key may lie across.
  constexpr size_t kOverlap = kBlockBytes;
  AlignedBuffer buffer(kOverlap + kChunkBytes);
  for (uint64_t at = 0; at < bucket.data_bytes; at += kChunkBytes) {
    if (deadline.expired())
      return fail(ErrorCode::timeout, fmt::format("{}: not all was looked at", config_.directory));
    if (!usable()) return std::unexpected(write_refused(-ECANCELED).error());
    const uint64_t wanted = std::min<uint64_t>(buffer.capacity(), round_up(bucket.data_bytes - at, kBlockBytes));
    const ssize_t got = io_->read(fd->get(), buffer.data(), wanted, at, name);
    if (got < 0) return unreadable(static_cast<int>(-got));
    if (contains_any({buffer.data(), static_cast<size_t>(got)}, prefixes)) return true;
  }
  return false;
}

Result<uint64_t> DiskTier::purge_bucket(const Bucket& bucket, std::span<const std::string> prefixes) {
  std::optional<BucketMeta> meta;
  read_meta(bucket.id, meta);
  const auto is_one = [&](const DiskRecord& record) {
    return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return record.key.starts_with(prefix); });
  };
  const uint64_t ticket = events_.before_keeping ? events_.before_keeping() : 0;
  std::vector<DiskRecord> records;
  if (meta) records = read_records(bucket, *meta, config_.bucket_bytes, [](const DiskEntry&) { return true; });
  RAGFS_PAUSE_POINT("disk.purge");
  take_out(bucket, meta ? &*meta : nullptr);
  const auto purged = std::erase_if(records, is_one);
  if (events_.keep) {
    for (DiskRecord& record : records) events_.keep(std::move(record), ticket);
  }
  return purged;
}

Result<uint64_t> DiskTier::purge(std::span<const std::string> prefixes, Deadline deadline) {
  if (!wait_recovered(deadline)) {
    return fail(ErrorCode::timeout, fmt::format("{}: its recovery still runs", config_.directory));
  }
  uint64_t purged = 0;
  for (const std::shared_ptr<Bucket>& bucket : buckets_->all()) {
    const Result<bool> holds = holds_any(*bucket, prefixes, deadline);
    if (!holds) return std::unexpected(holds.error());
    if (!*holds) continue;
    const Result<uint64_t> of_bucket = purge_bucket(*bucket, prefixes);
    if (!of_bucket) return of_bucket;
    purged += *of_bucket;
  }
  while (remove_quarantined()) {
  }
  if (has_strays_.load()) retry_strays();
  if (has_strays_.load() || quarantined_bytes_.load() > 0) {
    return fail(ErrorCode::io, fmt::format("{}: files cannot be removed; see the log", config_.directory));
  }
  return purged;
}

}  // namespace ragfs
