#include "ragfs/store/disk/disk_tier.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {

namespace {
constexpr int64_t kReapInterval_ms = 20;
}

std::string_view disk_counter_name(DiskCounter counter) {
  static constexpr std::array<std::string_view, kDiskCounterCount> kNames = {"hits",
                                                                             "misses",
                                                                             "expired",
                                                                             "corrupt_records",
                                                                             "vanished_files",
                                                                             "read_errors",
                                                                             "short_reads",
                                                                             "read_timeouts",
                                                                             "reads_shed",
                                                                             "reads_skipped",
                                                                             "buckets_written",
                                                                             "records_written",
                                                                             "bytes_written",
                                                                             "payload_bytes",
                                                                             "write_failures",
                                                                             "writes_without_room",
                                                                             "buckets_evicted",
                                                                             "records_evicted",
                                                                             "records_reinserted",
                                                                             "erased",
                                                                             "recovered_records",
                                                                             "recovered_buckets",
                                                                             "quarantined_buckets",
                                                                             "recovery_skipped",
                                                                             "strays",
                                                                             "orphans_removed",
                                                                             "direct_fallbacks",
                                                                             "probes"};
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
  generation_.store(directory_.owner().start_number << 40);
  buckets_ = std::make_unique<BucketSet>(*io_, config_.most_open_files);
  if (!config_.direct_io) buckets_->give_up_direct();
  tombstones_ = std::make_unique<TombstoneLog>(*io_, directory_.owner().store);
  std::vector<uint32_t> metas;
  if (const int listed = sort_out(metas); listed < 0) {
    return fail(ErrorCode::io, fmt::format("{} cannot be listed ({})", config_.directory, errno_name(-listed)),
                -listed);
  }
  if (auto begun = begin_log(metas); !begun) return begun;
  if (config_.io_uring && io_->is_kernel()) rings_ = RingPool::open(config_.read_threads);
  readers_ = std::make_unique<ReadPool>(config_.read_threads, config_.read_queue);
  evictor_ = std::thread([this] { evict_loop(); });
  recoverer_ = std::thread([this, metas = std::move(metas)] { recover(metas); });
  return {};
}

// From here on until the end of recovery, what was removed in earlier lives and what is removed meanwhile is known.
Result<void> DiskTier::begin_log(std::vector<uint32_t>& metas) {
  auto loaded = tombstones_->load();
  if (!loaded) return std::unexpected(loaded.error());
  if (loaded->damaged || (loaded->missing && !metas.empty())) {
    // Before a new log begins, or the start after this one would believe them.
    for (const uint32_t id : metas) {
      if (quarantine(id, "the tombstone log is damaged or gone: what was removed is not known")) continue;
      return fail(ErrorCode::io, fmt::format("{}: the tombstone log is damaged and bucket {:08x} cannot be set aside; "
                                             "empty the directory to begin anew",
                                             config_.directory, id));
    }
    metas.clear();
  }
  recovery_window_ = std::make_unique<Deaths::Window>(deaths_);
  for (const Tombstone& tombstone : loaded->tombstones) deaths_.note(tombstone.hash, tombstone.generation);
  return tombstones_->begin(loaded->tombstones);
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
  if (rings_ != nullptr) rings_->reap();
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
  const bool listed_soon = deaths_.note(hash, generation);
  const bool was_there = index_.erase(hash, generation);
  if (was_there) add(DiskCounter::erased);
  if (!listed_soon && !was_there && !has_strays_.load()) return true;
  // A disk that does not answer now is not waited for; the tombstone stays pending.
  const bool wait = usable();
  const bool written = tombstones_->append(hash, generation, wait ? deadline : Deadline::in_ms(0));
  if (tombstones_->records() > config_.most_tombstones) wake_evictor();
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
  if (!fence_rule(FenceRule::kHandleClosed)) return;
  tombstones_->give_up();
  directory_.release();
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
  while (rings_ != nullptr && rings_->reap() > 0) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, Deadline::in_ms(kReapInterval_ms));
  }
  if (recoverer_.joinable()) recoverer_.join();
  if (evictor_.joinable()) evictor_.join();
  const bool whole = tombstones_ != nullptr && tombstones_->close(deadline);
  if (readers_ == nullptr || fence_->fenced()) return;
  const bool clean = whole && tombstones_->failures() == 0 && !was_recovering;
  RAGFS_PAUSE_POINT("disk.before_clean");
  if (!clean) {
    log(fmt::format("action=disk_closed_unclean dir={} - the next start begins a new incarnation", config_.directory));
    return;
  }
  if (auto marked = directory_.mark_clean(*io_); !marked) log("action=disk_close_failed " + marked.error().text());
}

}  // namespace ragfs
