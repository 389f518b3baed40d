// DiskTier: making room, oldest bucket first.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
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
    bool overfull = false;
    bool room = has_room(wanted + config_.bucket_bytes / 8, overfull);
    // A bound: as many steps as there are buckets now.
    for (size_t left = buckets_->count() + 1; !room && left > 0 && usable(); --left) {
      if (!evict_oldest()) break;
      room = has_room(wanted + config_.bucket_bytes / 8, overfull);
    }
    while (buckets_->count() > config_.most_buckets && usable() && evict_oldest()) {
    }
    if (tombstones_->records() > config_.most_tombstones && !recovering_.load()) {
      tombstones_->request_compaction(buckets_->oldest_generation());
      if (tombstones_->records() > 2 * config_.most_tombstones) evict_oldest();
    }
    const MutexLock lock(mutex_);
    ++evictions_done_;
    changed_.notify_all();
  }
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

bool DiskTier::evict_oldest() {
  if (remove_quarantined()) return true;
  const std::shared_ptr<Bucket> bucket = buckets_->oldest();
  if (bucket == nullptr) return false;
  RAGFS_PAUSE_POINT("disk.evict");
  std::optional<BucketMeta> meta;
  read_meta(bucket->id, meta);
  if (meta) {
    std::vector<DiskEntry> dropped;
    for (const MetaEntry& entry : meta->entries) {
      const auto found = index_.peek(entry.hash);
      if (found && found->bucket == bucket->id && index_.erase_in(entry.hash, bucket->id)) dropped.push_back(*found);
    }
    add(DiskCounter::records_evicted, dropped.size());
    if (!dropped.empty() && events_.on_dropped) events_.on_dropped(dropped);
  }
  bucket->gone.store(true);
  // The meta first: without it the data is an orphan, never an object.
  int result = io_->unlink(bucket_meta_name(bucket->id));
  RAGFS_PAUSE_POINT("disk.evict_unlink");
  if (result == 0 || result == -ENOENT) result = io_->unlink(bucket_data_name(bucket->id));
  if (result < 0 && result != -ENOENT && usable()) {
    log(fmt::format("action=disk_evict_failed dir={} bucket={:08x} errno={}", config_.directory, bucket->id,
                    errno_name(-result)));
  }
  buckets_->remove(bucket->id);
  add(DiskCounter::buckets_evicted);
  return result == 0 || result == -ENOENT;
}

}  // namespace ragfs
