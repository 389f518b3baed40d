#include "ragfs/store/node/second_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace ragfs {
namespace {

constexpr int64_t kLongestTick_ms = 250;
constexpr int64_t kRecoveryPatience_ms = 1'000;  // at start
constexpr uint64_t kSmallBytes = 1024;           // of a value
constexpr uint64_t kTypicalBytes = 4096;
constexpr int64_t kRoomPatience_ms = 20;  // until a full queue is asked again

uint64_t objects_on(const std::vector<DiskTierConfig>& disks) {
  uint64_t bytes = 0;
  for (const DiskTierConfig& disk : disks) bytes += disk.capacity_bytes;
  return bytes / kTypicalBytes;
}

// As the value of a label.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

Result<void> SecondTierConfig::validate() const {
  if (disks.empty() || disks.size() > kMostDirectories) {
    return fail(ErrorCode::config,
                fmt::format("{} disk directories; allowed: 1 to {}", disks.size(), kMostDirectories));
  }
  std::set<std::string> names;
  for (const DiskTierConfig& disk : disks) {
    if (auto valid = disk.validate(); !valid) return valid;
    if (!names.insert(disk.directory).second) {
      return fail(ErrorCode::config, fmt::format("directory {} is named twice", disk.directory));
    }
  }
  if (queue_bytes < (uint64_t{1} << 20)) return fail(ErrorCode::config, "queue_bytes is below 1 MiB");
  if (queue_records == 0) return fail(ErrorCode::config, "queue_records is 0");
  if (flush_ms < 1) return fail(ErrorCode::config, "flush_ms is below 1");
  if (task_timeout_ms < 1) return fail(ErrorCode::config, "task_timeout_ms is below 1");
  if (read_timeout_ms < 1) return fail(ErrorCode::config, "read_timeout_ms is below 1");
  if (removal_wait_ms < 0) return fail(ErrorCode::config, "removal_wait_ms is below 0");
  if (clock == nullptr) return fail(ErrorCode::config, "clock is not set");
  return {};
}

SecondTier::SecondTier(SecondTierConfig config, StoreLog log)
    : config_(std::move(config)), shared_(std::make_shared<DiskLane::Shared>()), touched_(objects_on(config_.disks)) {
  shared_->log = std::move(log);
}

Result<std::unique_ptr<SecondTier>> SecondTier::open(SecondTierConfig config, StoreLog log, PosixFiles& files) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  auto tier = std::unique_ptr<SecondTier>(new SecondTier(std::move(config), std::move(log)));
  for (const DiskTierConfig& disk : tier->config_.disks) {
    DiskLane::Config lane;
    lane.disk = disk;
    lane.disk.clock = tier->config_.clock;
    lane.queue_bytes = tier->config_.queue_bytes;
    lane.queue_records = tier->config_.queue_records;
    lane.flush_ms = tier->config_.flush_ms;
    lane.task_timeout_ms = tier->config_.task_timeout_ms;
    lane.removal_wait_ms = tier->config_.removal_wait_ms;
    tier->lanes_.push_back(DiskLane::open(std::move(lane), tier->shared_, files));
  }
  tier->control_ = std::thread([raw = tier.get()] { raw->control_loop(); });
  // A short one is waited for: what is asked for first then is there.
  const Deadline patience = Deadline::in_ms(kRecoveryPatience_ms);
  for (const auto& lane : tier->lanes_) {
    if (lane->disk() != nullptr) lane->disk()->wait_recovered(patience);
  }
  return tier;
}

SecondTier::~SecondTier() { close(Deadline::in_ms(0)); }

// --- reading ---

std::optional<Bytes> SecondTier::get(std::string_view key, uint64_t hash, Deadline deadline) {
  const uint64_t ticket = shared_->marks.now();
  const Deadline until = Deadline::earlier(deadline, Deadline::in_ms(config_.read_timeout_ms));
  std::optional<DiskHit> hit = lane_for(hash).get(key, hash, until);
  if (!hit) return std::nullopt;
  if (config_.promote_hits != 0 && hit->hits >= config_.promote_hits) promote(key, hash, *hit, ticket);
  return std::move(hit->value);
}

void SecondTier::promote(std::string_view key, uint64_t hash, const DiskHit& hit, uint64_t ticket) {
  int64_t expires_at_ns = 0;
  if (hit.expires_at_ms != 0) {
    const int64_t left_ms = hit.expires_at_ms - config_.clock->wall_ns() / 1'000'000;
    if (left_ms <= 0) return;
    expires_at_ns = config_.clock->monotonic_ns() + left_ms * 1'000'000;
  }
  const MemoryTier::Item item{
      .key = key,
      .hash = hash,
      .head = hit.value.view(),
      .tail = {},
      .options = {.expires_at_ns = expires_at_ns, .preferred = (hit.flags & kRecordPreferred) != 0}};
  const auto stored = memory_->put_unless_changed(item, shared_->marks, ticket);
  (stored && *stored ? promotions_ : promotions_refused_).fetch_add(1, std::memory_order_relaxed);
}

// --- changing ---

void SecondTier::begin(uint64_t hash, Deadline deadline) {
  shared_->marks.begin(hash);
  lane_for(hash).kill(hash, deadline);
}

DiskRecord SecondTier::record_of(const EvictedObject& object) const {
  DiskRecord record;
  record.hash = object.hash;
  record.key = std::string(object.key);
  record.flags = object.preferred ? kRecordPreferred : 0;
  if (object.expires_at_ns != 0) {
    const int64_t left_ns = object.expires_at_ns - config_.clock->monotonic_ns();
    record.expires_at_ms = (config_.clock->wall_ns() + left_ns) / 1'000'000;
  }
  record.value = Bytes::copy(object.value);
  return record;
}

void SecondTier::evicted(const EvictedObject& object, uint64_t ticket) {
  if (closed_.load(std::memory_order_relaxed)) return;
  const bool seen_before = touched_.touch(object.hash);
  if (!config_.admit_all && !object.touched && !seen_before && !object.preferred) {
    untouched_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  DiskLane& lane = lane_for(object.hash);
  if (lane.refuses(object.hash, record_bytes(object.key.size(), object.value.size()))) return;
  lane.offer(record_of(object), ticket);
}

void SecondTier::was_put(std::string_view key, uint64_t hash) {
  if (!config_.offload_on_put || closed_.load(std::memory_order_relaxed)) return;
  // What memory shows now may be another's put, which is newer; a change that comes later is seen by the ticket.
  const uint64_t ticket = shared_->marks.now();
  memory_->visit_one(key, hash, [&](const EvictedObject& object) {
    DiskLane& lane = lane_for(hash);
    if (lane.refuses(hash, record_bytes(key.size(), object.value.size()))) return;
    lane.offer(record_of(object), ticket);
  });
}

// --- ending ---

bool SecondTier::flush(Deadline deadline) {
  bool all = true;
  for (const auto& lane : lanes_) lane->queue().hurry();
  for (const auto& lane : lanes_) {
    if (lane->disk() != nullptr && !lane->queue().wait_empty(deadline)) all = false;
  }
  return all;
}

Result<uint64_t> SecondTier::purge(std::span<const std::string> prefixes, Deadline deadline) {
  uint64_t purged = 0;
  std::optional<Error> error;  // the first; the other directories are purged all the same
  for (const auto& lane : lanes_) {
    const Result<uint64_t> of_lane = lane->purge(prefixes, deadline);
    if (of_lane) {
      purged += *of_lane;
    } else if (!error) {
      error = of_lane.error();
    }
  }
  if (error) return std::unexpected(*std::move(error));
  return purged;
}

void SecondTier::flush_memory(bool small, Deadline deadline) {
  const uint64_t ticket = shared_->marks.now();
  memory_->visit([&](const EvictedObject& object) {
    if ((object.value.size() <= kSmallBytes) != small) return !deadline.expired();
    DiskLane& lane = lane_for(object.hash);
    const uint64_t bytes = record_bytes(object.key.size(), object.value.size());
    while (lane.usable() && !lane.queue().has_room(bytes) && !deadline.expired()) {
      lane.queue().hurry();
      lane.queue().wait_empty(Deadline::earlier(deadline, Deadline::in_ms(kRoomPatience_ms)));
    }
    if (!lane.refuses(object.hash, bytes)) lane.offer(record_of(object), ticket);
    return !deadline.expired();
  });
}

void SecondTier::close(Deadline deadline) {
  if (closed_.exchange(true)) return;
  if (memory_ != nullptr) {
    flush_memory(true, deadline);
    flush_memory(false, deadline);
  }
  for (const auto& lane : lanes_) lane->close(deadline);
  shared_->ring();
  control_.join();
}

// --- the control thread: no write, read or removal waits for it ---

void SecondTier::control_loop() {
  int64_t tick_ms = kLongestTick_ms;
  for (const DiskTierConfig& disk : config_.disks) tick_ms = std::min(tick_ms, disk.hang_timeout_ms / 4 + 1);
  while (!closed_.load()) {
    for (const auto& lane : lanes_) lane->tick();
    const MutexLock lock(shared_->mutex);
    if (!shared_->woken) shared_->wake.wait_until(shared_->mutex, Deadline::in_ms(tick_ms));
    shared_->woken = false;
  }
}

// --- figures ---

std::string SecondTier::incarnation() const {
  std::string all = "disk";
  for (const auto& lane : lanes_) {
    if (lane->disk() == nullptr) return "";
    const OwnerRecord& owner = lane->disk()->owner();
    all += fmt::format("-{:016x}{:016x}", owner.incarnation.high, owner.incarnation.low);
  }
  const Hash128 hash = hash128(all);
  return fmt::format("disk-{:016x}{:016x}", hash.high, hash.low);
}

std::vector<std::string> SecondTier::warnings() const {
  std::vector<std::string> out;
  for (const auto& lane : lanes_) {
    if (lane->disk() == nullptr) {
      out.push_back(fmt::format("disk directory {} is not used: {}", lane->directory(), lane->reason()));
      continue;
    }
    const DiskState state = lane->disk()->state();
    if (state == DiskState::fenced) {
      const FenceReason why = lane->disk()->fence().reason();
      out.push_back(
          fmt::format("disk directory {} is fenced ({}: {} failed with {}); replace or repair the disk, then "
                      "restart",
                      lane->directory(), why.reason, disk_op_name(why.op), errno_name(why.sys_errno)));
    } else if (state == DiskState::suspended) {
      out.push_back(fmt::format("disk directory {} is suspended: calls on it do not come back", lane->directory()));
    }
  }
  return out;
}

std::vector<NamedCount> SecondTier::metrics() const {
  std::vector<NamedCount> out;
  const auto total = [&](std::string name, auto figure, std::string labels = {}) {
    uint64_t sum = 0;
    for (const auto& lane : lanes_) sum += figure(*lane);
    out.push_back({std::move(name), sum, std::move(labels)});
  };
  const auto of_disk = [](auto figure) {
    return [figure](const DiskLane& lane) { return lane.disk() == nullptr ? uint64_t{0} : figure(*lane.disk()); };
  };
  for (size_t i = 0; i < kLaneCounterCount; ++i) {
    const auto counter = static_cast<LaneCounter>(i);
    total(fmt::format("disk_{}_total", lane_counter_name(counter)),
          [&](const DiskLane& l) { return l.count(counter); });
  }
  for (size_t i = 0; i < kDiskCounterCount; ++i) {
    const auto counter = static_cast<DiskCounter>(i);
    total(fmt::format("disk_{}_total", disk_counter_name(counter)),
          of_disk([=](const DiskTier& disk) { return disk.count(counter); }));
  }
  for (size_t i = 0; i < kDiskOpCount; ++i) {
    const auto op = static_cast<DiskOp>(i);
    total("disk_errors_total", of_disk([=](const DiskTier& disk) { return disk.errors(op); }),
          fmt::format("{{op=\"{}\"}}", disk_op_name(op)));
  }
  out.push_back({"disk_offload_untouched_total", untouched_.load()});
  out.push_back({"disk_promotions_total", promotions_.load()});
  out.push_back({"disk_promotions_refused_total", promotions_refused_.load()});
  total("disk_queue_objects", [](const DiskLane& lane) { return lane.queue().records(); });
  total("disk_queue_bytes", [](const DiskLane& lane) { return lane.queue().bytes(); });
  total("disk_objects", of_disk([](const DiskTier& disk) { return disk.objects(); }));
  total("disk_bytes", of_disk([](const DiskTier& disk) { return disk.used_bytes(); }));
  total("disk_capacity_bytes", of_disk([](const DiskTier& disk) { return disk.config().capacity_bytes; }));
  total("disk_index_bytes", of_disk([](const DiskTier& disk) { return disk.index_bytes(); }));
  total("disk_buckets", of_disk([](const DiskTier& disk) { return uint64_t{disk.buckets()}; }));
  total("disk_tombstones", of_disk([](const DiskTier& disk) { return disk.tombstones().records(); }));
  total("disk_recovery_ns", of_disk([](const DiskTier& disk) { return static_cast<uint64_t>(disk.recovery_ns()); }));
  total("disk_checks_total", of_disk([](const DiskTier& disk) { return disk.fence().stats().checks; }));
  total("disk_check_ns_total", of_disk([](const DiskTier& disk) { return disk.fence().stats().check_ns; }));
  total("disk_checks_skipped_total", of_disk([](const DiskTier& disk) { return disk.fence().stats().checks_skipped; }));
  total("disk_syncfs_total", of_disk([](const DiskTier& disk) { return disk.fence().stats().syncfs_calls; }));
  total("disk_syncfs_deferred_total",
        of_disk([](const DiskTier& disk) { return disk.fence().stats().syncfs_deferred; }));
  const auto gauge = [&](std::string_view name, auto on) {
    for (const auto& lane : lanes_) {
      out.push_back({std::string(name), on(*lane) ? 1U : 0U, fmt::format("{{dir=\"{}\"}}", quoted(lane->directory()))});
    }
  };
  const auto in_state = [](DiskState state) {
    return [state](const DiskLane& lane) { return lane.disk() != nullptr && lane.disk()->state() == state; };
  };
  gauge("disk_fenced", in_state(DiskState::fenced));
  gauge("disk_suspended", in_state(DiskState::suspended));
  gauge("disk_absent", [](const DiskLane& lane) { return lane.disk() == nullptr; });
  for (const auto& lane : lanes_) {
    if (!in_state(DiskState::fenced)(*lane)) continue;
    const FenceReason why = lane->disk()->fence().reason();
    out.push_back({"disk_fence_info", 1,
                   fmt::format("{{dir=\"{}\",reason=\"{}\",op=\"{}\",errno=\"{}\"}}", quoted(lane->directory()),
                               why.reason, disk_op_name(why.op), errno_name(why.sys_errno))});
  }
  return out;
}

}  // namespace ragfs
