// DiskTier: making room, oldest bucket first.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {
namespace {

constexpr int64_t kRoomPatience_ms = 2'000;  // how long a write waits for the evictor
constexpr int64_t kEvictRetry_ms = 500;
constexpr size_t kMostMetaBytes = size_t{1} << 30;

}  // namespace

// `overfull`: more than the budget allows is in use as it is, or the file system is below its floor.
bool DiskTier::has_room(uint64_t bytes, bool& overfull) {
  uint64_t free = UINT64_MAX;
  if (io_->free_bytes(free) < 0) free = UINT64_MAX;
  const uint64_t used = used_bytes();
  overfull = used > config_.capacity_bytes || free < config_.min_free_bytes;
  return used + bytes <= config_.capacity_bytes && free >= config_.min_free_bytes + bytes;
}

bool DiskTier::wait_for_room(uint64_t bytes) {
  bool overfull = false;
  if (has_room(bytes, overfull)) return true;
  const Deadline patience = Deadline::in_ms(kRoomPatience_ms);
  while (usable() && !patience.expired()) {
    {
      const MutexLock lock(mutex_);
      const uint64_t before = evictions_done_;
      room_wanted_ = true;
      wanted_bytes_ = std::max(wanted_bytes_, bytes);
      changed_.notify_all();
      while (evictions_done_ == before && !closing_.load() && !fence_->fenced()) {
        if (!changed_.wait_until(mutex_, patience)) break;
      }
    }
    if (has_room(bytes, overfull)) return true;
  }
  return false;
}

void DiskTier::wake_evictor() {
  const MutexLock lock(mutex_);
  room_wanted_ = true;
  changed_.notify_all();
}

void DiskTier::evict_loop() {
  while (true) {
    uint64_t wanted = 0;
    {
      const MutexLock lock(mutex_);
      while (!closing_.load() && !(room_wanted_ && usable())) {
        changed_.wait_until(mutex_, Deadline::in_ms(kEvictRetry_ms));
      }
      if (closing_.load()) return;
      room_wanted_ = false;
      wanted = std::exchange(wanted_bytes_, 0);
    }
    probe_if_due();
    bool overfull = false;
    bool room = has_room(wanted + config_.bucket_bytes / 8, overfull);
    // A bound: as many steps as there are buckets now.
    for (size_t left = buckets_->count() + 1; !room && left > 0 && usable(); --left) {
      if (!evict_oldest()) break;
      room = has_room(wanted + config_.bucket_bytes / 8, overfull);
    }
    while (buckets_->count() > config_.most_buckets && usable() && evict_oldest()) {
    }
    if (tombstones_->records() > config_.most_tombstones) compact_log();
    const MutexLock lock(mutex_);
    ++evictions_done_;
    changed_.notify_all();
  }
}

void DiskTier::compact_log() {
  if (has_strays_.load()) retry_strays();
  if (has_strays_.load() || recovering_.load()) return;
  // What is removed from here on has this generation or a later one, and stays, whoever writes a bucket meanwhile.
  const uint64_t latest = generation_.load();
  // Writers first: a bucket that leaves them is among the buckets by then.
  const uint64_t of_writers = deaths_.oldest_generation();
  tombstones_->request_compaction(std::min({latest, of_writers, buckets_->oldest_generation()}));
  RAGFS_PAUSE_POINT("disk.compact");
  // Buckets that are old keep tombstones alive: they go, so that the log stays within twice its bound.
  if (tombstones_->records() > 2 * config_.most_tombstones) evict_oldest();
}

void DiskTier::note_stray(uint32_t id) {
  add(DiskCounter::strays);
  const MutexLock lock(mutex_);
  strays_.push_back(id);
  has_strays_.store(true);
}

// The log has grown for their sake: they go now. Where even that fails, the directory is given up before the log
// outgrows it.
void DiskTier::retry_strays() {
  std::vector<uint32_t> strays;
  {
    const MutexLock lock(mutex_);
    strays.swap(strays_);
  }
  std::vector<uint32_t> left;
  int result = 0;
  for (const uint32_t id : strays) {
    const int unlinked = io_->unlink(bucket_meta_name(id));
    if (unlinked < 0 && unlinked != -ENOENT) {
      result = unlinked;
      left.push_back(id);
    } else {
      io_->unlink(bucket_data_name(id));
    }
  }
  if (result == 0) result = io_->fsync_directory();
  if (result < 0 && tombstones_->records() > 4 * config_.most_tombstones) {
    fence_->fence("buckets that cannot be removed", DiskOp::unlink, -result);
  }
  const MutexLock lock(mutex_);
  strays_.insert(strays_.end(), left.begin(), left.end());
  has_strays_.store(!strays_.empty() || result < 0);
}

int DiskTier::read_meta(uint32_t id, std::optional<BucketMeta>& meta) {
  std::string bytes;
  const int result = io_->read_file(bucket_meta_name(id), kMostMetaBytes, bytes);
  if (result == 0) meta = decode_meta(bytes);
  if (meta && (meta->header.bucket != id || meta->header.store != directory_.owner().store)) meta.reset();
  return result;
}

// What was set aside goes before what is served.
bool DiskTier::remove_quarantined() {
  std::string name;
  {
    const MutexLock lock(mutex_);
    if (quarantined_.empty()) return false;
    name = quarantined_.back();
    quarantined_.pop_back();
  }
  uint64_t bytes = 0;
  if (io_->size_of(name, bytes) == 0 && io_->unlink(name) == 0) {
    quarantined_bytes_.fetch_sub(std::min(bytes, quarantined_bytes_.load()));
  }
  return true;
}

std::vector<DiskRecord> DiskTier::read_records(const Bucket& bucket, const BucketMeta& meta, uint64_t most_bytes,
                                               const std::function<bool(const DiskEntry&)>& wanted) {
  std::vector<DiskRecord> records;
  uint64_t bytes = 0;
  int result = 0;
  const std::shared_ptr<OwnedFd> fd = buckets_->descriptor(bucket, result);
  if (fd == nullptr) return records;
  const std::string name = bucket_data_name(bucket.id);
  for (const MetaEntry& entry : meta.entries) {
    const auto found = index_.peek(entry.hash);
    if (!found || found->bucket != bucket.id || !wanted(*found)) continue;
    bytes += entry.size;
    if (bytes > most_bytes || !usable()) break;
    const uint64_t start = entry.offset / kBlockBytes * kBlockBytes;
    AlignedBuffer buffer(entry.offset + entry.size - start);
    const ssize_t got = io_->read(fd->get(), buffer.data(), buffer.capacity(), start, name);
    const size_t at = entry.offset - start;
    if (got < static_cast<ssize_t>(at + entry.size)) continue;
    const auto record = decode_record({buffer.data() + at, entry.size});
    if (!record || record->info.generation != entry.generation) continue;
    records.push_back({.hash = entry.hash,
                       .key = std::string(record->key),
                       .generation = entry.generation,
                       .expires_at_ms = record->info.expires_at_ms,
                       .flags = record->info.flags,
                       .value = Bytes::copy(record->value)});
  }
  return records;
}

// Those that were hit since they were written, up to a quarter of a bucket, hottest use of the disk's time: they would
// be the next misses.
std::vector<DiskRecord> DiskTier::read_hot(const Bucket& bucket, const BucketMeta& meta) {
  return read_records(bucket, meta, config_.bucket_bytes / 4, [](const DiskEntry& entry) { return entry.hits > 0; });
}

bool DiskTier::evict_oldest() {
  if (remove_quarantined()) return true;
  const std::shared_ptr<Bucket> bucket = buckets_->oldest();
  if (bucket == nullptr) return false;
  RAGFS_PAUSE_POINT("disk.evict");
  std::optional<BucketMeta> meta;
  read_meta(bucket->id, meta);
  std::vector<DiskRecord> hot;
  const uint64_t ticket = events_.before_keeping ? events_.before_keeping() : 0;
  if (meta && events_.keep) hot = read_hot(*bucket, *meta);
  take_out(*bucket, meta ? &*meta : nullptr);
  add(DiskCounter::records_reinserted, hot.size());
  for (DiskRecord& record : hot) events_.keep(std::move(record), ticket);
  return true;
}

// First the meta for good, then the index: as long as a restart could find a copy, the index knows it, and a removal is
// logged. Then the data, which without a meta is no object.
void DiskTier::take_out(const Bucket& bucket, const BucketMeta* meta) {
  int result = io_->unlink(bucket_meta_name(bucket.id));
  if (result == -ENOENT) result = 0;
  if (result == 0) result = io_->fsync_directory();
  if (result < 0) {
    note_stray(bucket.id);
    if (usable()) {
      log(fmt::format("action=disk_evict_failed dir={} bucket={:08x} errno={}", config_.directory, bucket.id,
                      errno_name(-result)));
    }
  }
  RAGFS_PAUSE_POINT("disk.evict_unlink");
  uint64_t dropped = 0;
  if (meta != nullptr) {
    for (const MetaEntry& entry : meta->entries) dropped += index_.erase_in(entry.hash, bucket.id) ? 1 : 0;
  }
  add(DiskCounter::records_evicted, dropped);
  if (result == 0) io_->unlink(bucket_data_name(bucket.id));
  buckets_->remove(bucket.id);
  add(DiskCounter::buckets_evicted);
}

}  // namespace ragfs
