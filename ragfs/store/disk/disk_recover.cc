// DiskTier: what an earlier life left in the directory. Serves while it scans.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {
namespace {

// "0000002a.data" with this ending -> 42.
std::optional<uint32_t> bucket_of(std::string_view name, std::string_view ending) {
  if (name.size() != 8 + ending.size() || !name.ends_with(ending)) return std::nullopt;
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + 8, id, 16);
  if (error != std::errc() || end != name.data() + 8) return std::nullopt;
  return id;
}

}  // namespace

// Lists the directory, removes what an interrupted write left, and answers the buckets to recover, oldest first.
int DiskTier::sort_out(std::vector<uint32_t>& metas) {
  std::vector<std::string> names;
  if (const int result = io_->list(names); result < 0) return result;
  std::set<uint32_t> with_meta;
  for (const std::string& name : names) {
    if (const auto id = bucket_of(name, ".meta")) with_meta.insert(*id);
  }
  uint32_t next = 0;
  for (const std::string& name : names) {
    const auto data = bucket_of(name, ".data");
    const auto temporary = bucket_of(name, ".tmp");
    for (const auto& id : {data, temporary, bucket_of(name, ".meta"), bucket_of(name, ".data.bad")}) {
      if (id) next = std::max(next, *id + 1);
    }
    if (temporary || (data && !with_meta.contains(*data))) {
      if (io_->unlink(name) == 0) add(DiskCounter::orphans_removed);
    } else if (name.ends_with(".bad")) {
      uint64_t bytes = 0;
      io_->size_of(name, bytes);
      quarantined_bytes_.fetch_add(bytes);
      const MutexLock lock(mutex_);
      quarantined_.push_back(name);
    }
  }
  metas.assign(with_meta.begin(), with_meta.end());
  next_bucket_.store(next);
  return 0;
}

void DiskTier::recover_bucket(uint32_t id) {
  RAGFS_PAUSE_POINT("disk.recover");
  std::optional<BucketMeta> meta;
  const int result = read_meta(id, meta);
  uint64_t data_bytes = 0;
  const int sized = result == 0 ? io_->size_of(bucket_data_name(id), data_bytes) : result;
  if (result < 0 || (sized < 0 && sized != -ENOENT)) {
    // Perhaps only now: nothing is deleted for it.
    add(DiskCounter::recovery_skipped);
    note_stray(id);
    log(fmt::format("action=disk_bucket_skipped dir={} bucket={:08x} errno={} - left as it is until the next start",
                    config_.directory, id, errno_name(result < 0 ? -result : -sized)));
    return;
  }
  const auto set_aside = [&](std::string_view why) {
    if (!quarantine(id, why)) note_stray(id);
  };
  if (!meta) return set_aside("its meta is damaged, or another directory's");
  if (sized == -ENOENT) return set_aside("its data file is gone");
  if (data_bytes != meta->header.data_bytes) return set_aside("its data file has another length");

  auto bucket = std::make_shared<Bucket>();
  bucket->id = id;
  bucket->data_bytes = data_bytes;
  bucket->meta_bytes = round_up(sizeof(MetaHeader) + meta->entries.size() * sizeof(MetaEntry), kBlockBytes);
  bucket->count = meta->header.count;
  bucket->oldest_generation = meta->header.oldest_generation;
  buckets_->add(std::move(bucket));
  const int64_t now_ms = wall_ms();
  uint64_t found = 0;
  for (const MetaEntry& entry : meta->entries) {
    if (entry.expires_at_ms != 0 && entry.expires_at_ms <= now_ms) continue;
    const DiskEntry copy{.hash = entry.hash,
                         .generation = entry.generation,
                         .expires_at_ms = entry.expires_at_ms,
                         .bucket = id,
                         .offset = entry.offset,
                         .size = entry.size};
    if (deaths_.admit(copy.hash, copy.generation, [&] { return index_.insert_recovered(copy); })) ++found;
  }
  add(DiskCounter::recovered_buckets);
  add(DiskCounter::recovered_records, found);
}

// Newest first: what was written last is most likely to be asked for.
void DiskTier::recover(const std::vector<uint32_t>& metas) {
  const int64_t began_ns = config_.clock->monotonic_ns();
  auto id = metas.rbegin();
  while (id != metas.rend() && !closing_.load() && !fence_->fenced()) recover_bucket(*id++);
  // What was not looked at is not known, and may come up in the next life.
  for (; id != metas.rend(); ++id) note_stray(*id);
  recovery_window_.reset();
  recovery_ns_.store(config_.clock->monotonic_ns() - began_ns);
  const MutexLock lock(mutex_);
  recovering_.store(false);
  changed_.notify_all();
}

// Out of the way, but not deleted: an operator may want to look. Goes first when room is needed. False if the meta
// keeps its name.
bool DiskTier::quarantine(uint32_t id, std::string_view why) {
  add(DiskCounter::quarantined_buckets);
  log(fmt::format("action=disk_bucket_quarantined dir={} bucket={:08x} - {}", config_.directory, id, why));
  bool out_of_the_way = true;
  for (const std::string& name : {bucket_meta_name(id), bucket_data_name(id)}) {
    uint64_t bytes = 0;
    io_->size_of(name, bytes);
    if (const int result = io_->rename(name, name + ".bad"); result < 0) {
      if (result != -ENOENT && name.ends_with(".meta")) out_of_the_way = false;
      continue;
    }
    quarantined_bytes_.fetch_add(bytes);
    const MutexLock lock(mutex_);
    quarantined_.push_back(name + ".bad");
  }
  return out_of_the_way && io_->fsync_directory() == 0;
}

}  // namespace ragfs
