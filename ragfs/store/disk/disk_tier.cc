#include "ragfs/store/disk/disk_tier.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {

std::string_view disk_counter_name(DiskCounter counter) {
  static constexpr std::array<std::string_view, kDiskCounterCount> kNames = {
      "hits",            "misses",           "expired",           "corrupt_records",  "vanished_files",
      "read_errors",     "short_reads",      "read_timeouts",     "reads_shed",       "reads_skipped",
      "buckets_written", "records_written",  "bytes_written",     "payload_bytes",    "write_failures",
      "writes_without_room", "buckets_evicted", "records_evicted", "erased", "recovered_records", "recovered_buckets", "quarantined_buckets", "recovery_skipped", "orphans_removed",
      "direct_fallbacks"};
  return kNames[static_cast<size_t>(counter)];
}

std::string_view disk_state_name(DiskState state) {
  switch (state) {
    case DiskState::serving: return "serving";
    case DiskState::recovering: return "recovering";
    case DiskState::suspended: return "suspended";
    case DiskState::fenced: return "fenced";
    case DiskState::closed: return "closed";
  }
  return "closed";
}

Result<void> DiskTierConfig::validate() const {
  const auto wrong = [](std::string_view field, uint64_t value, std::string_view allowed) {
    return fail(ErrorCode::config, fmt::format("{} is {}; allowed: {}", field, value, allowed));
  };
  if (directory.empty()) return fail(ErrorCode::config, "directory is empty; name an existing directory");
  if (bucket_bytes < kLeastBucketBytes || bucket_bytes > kMostBucketBytes) {
    return wrong("bucket_bytes", bucket_bytes, "64 KiB to 1 GiB");
  }
  if (capacity_bytes < 4 * bucket_bytes) return wrong("capacity_bytes", capacity_bytes, "at least four buckets");
  if (read_threads < 1 || read_threads > 256) return wrong("read_threads", read_threads, "1 to 256");
  if (read_queue < 1 || read_queue > 65'536) return wrong("read_queue", read_queue, "1 to 65536");
  if (hang_timeout_ms < 1) return fail(ErrorCode::config, "hang_timeout_ms is below 1");
  if (syncfs_interval_ms < 1) return fail(ErrorCode::config, "syncfs_interval_ms is below 1");
  if (most_tombstones < 16) return wrong("most_tombstones", most_tombstones, "at least 16");
  if (most_buckets < 4) return wrong("most_buckets", most_buckets, "at least 4");
  if (clock == nullptr) return fail(ErrorCode::config, "clock is not set");
  return {};
}

Result<std::unique_ptr<DiskTier>> DiskTier::open(DiskTierConfig config, DiskTierEvents events, PosixFiles& files) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  auto tier = std::unique_ptr<DiskTier>(new DiskTier(std::move(config), std::move(events)));
  if (auto begun = tier->begin(files); !begun) return std::unexpected(begun.error());
  return tier;
}

Result<void> DiskTier::begin(PosixFiles& files) {
  fence_ = std::make_unique<DiskFence>(files, DiskFence::Config{.directory = config_.directory,
                                                                .syncfs_interval_ms = config_.syncfs_interval_ms,
                                                                .clock = config_.clock,
                                                                .log = events_.log,
                                                                .on_fence = events_.on_fence});
  io_ = std::make_unique<DiskIo>(files, *fence_, watch_, *config_.clock);
  auto directory = OwnedDirectory::open(*io_, config_.directory);
  if (!directory) return std::unexpected(directory.error());
  directory_ = std::move(*directory);
  buckets_ = std::make_unique<BucketSet>(*io_, config_.most_open_files);
  if (!config_.direct_io) buckets_->give_up_direct();
  tombstones_ = std::make_unique<TombstoneLog>(*io_, directory_.owner().store);
  auto loaded = tombstones_->load();
  if (!loaded) return std::unexpected(loaded.error());
  old_buckets_refused_ = loaded->damaged;
  {
    const MutexLock lock(dead_mutex_);
    dead_ = std::move(loaded->tombstones);
  }
  std::vector<uint32_t> metas;
  if (!sort_out(metas)) return fail(ErrorCode::io, fmt::format("{} cannot be listed", config_.directory));
  readers_ = std::make_unique<ReadPool>(config_.read_threads, config_.read_queue);
  evictor_ = std::thread([this] { evict_loop(); });
  recoverer_ = std::thread([this, metas = std::move(metas)] {
    const int64_t began = config_.clock->monotonic_ns();
    for (auto id = metas.rbegin(); id != metas.rend() && !closing_.load(); ++id) recover_bucket(*id);
    recover();
    recovery_ns_.store(config_.clock->monotonic_ns() - began);
  });
  return {};
}

DiskTier::~DiskTier() { close(Deadline::in_ms(0)); }

bool DiskTier::usable() const {
  if (closing_.load(std::memory_order_relaxed)) return false;
  if (fence_->fenced() && fence_rule(FenceRule::kReadsStop)) return false;
  return !suspended_.load(std::memory_order_relaxed);
}

DiskState DiskTier::state() const {
  if (fence_->fenced()) return DiskState::fenced;
  if (closing_.load()) return DiskState::closed;
  if (suspended_.load()) return DiskState::suspended;
  return recovering_.load() ? DiskState::recovering : DiskState::serving;
}

bool DiskTier::watch() {
  const int64_t now = config_.clock->monotonic_ns();
  const int64_t limit = config_.hang_timeout_ms * 1'000'000;
  const int64_t check_began = fence_->check_began_ns();
  const bool hung = watch_.stuck(now, limit) > 0 || (check_began != 0 && now - check_began > limit);
  const bool suspend = hung && fence_rule(FenceRule::kSuspendOnHang);
  if (suspended_.exchange(suspend) != suspend) {
    log(fmt::format("action={} dir={} - calls on the disk {}", suspend ? "disk_suspended" : "disk_resumed",
                    config_.directory,
                    suspend ? fmt::format("have not come back for {} ms; the disk tier is skipped until they do",
                                          config_.hang_timeout_ms)
                            : "came back; the disk tier is used again"));
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  return suspend;
}

bool DiskTier::erase(uint64_t hash, uint64_t generation, Deadline deadline) {
  if (recovering_.load()) {
    const MutexLock lock(dead_mutex_);
    uint64_t& dead = dead_[hash];
    dead = std::max(dead, generation);
  }
  index_.erase(hash, generation);
  add(DiskCounter::erased);
  // A disk that does not answer now is not waited for; the tombstone stays pending.
  const bool wait = usable();
  const bool written = tombstones_->append(hash, generation, wait ? deadline : Deadline::in_ms(0));
  if (tombstones_->records() > config_.most_tombstones) {
    const MutexLock lock(mutex_);
    room_wanted_ = true;
    changed_.notify_all();
  }
  return written;
}

bool DiskTier::wait_recovered(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (recovering_.load()) {
    if (!changed_.wait_until(mutex_, deadline) && recovering_.load()) return false;
  }
  return true;
}

uint64_t DiskTier::used_bytes() const {
  return buckets_->bytes() + quarantined_bytes_.load() + tombstones_->records() * sizeof(Tombstone);
}

void DiskTier::release() {
  index_.clear();
  buckets_->clear();
  io_->close_directory();
  fence_->release_handle();
}

void DiskTier::close(Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  RAGFS_PAUSE_POINT("disk.close");
  closing_.store(true);
  {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  }
  const bool was_recovering = recovering_.load();
  if (readers_ != nullptr) readers_->stop();
  if (recoverer_.joinable()) recoverer_.join();
  if (evictor_.joinable()) evictor_.join();
  const bool whole = tombstones_ != nullptr && tombstones_->close(deadline);
  if (readers_ == nullptr || fence_->fenced()) return;
  const bool clean = whole && tombstones_->failures() == 0 && log_whole_.load() && !was_recovering;
  RAGFS_PAUSE_POINT("disk.before_clean");
  if (!clean) {
    log(fmt::format("action=disk_closed_unclean dir={} - the next start begins a new incarnation", config_.directory));
    return;
  }
  if (auto marked = directory_.mark_clean(*io_); !marked) log("action=disk_close_failed " + marked.error().text());
}

}  // namespace ragfs
