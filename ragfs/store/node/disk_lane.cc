#include "ragfs/store/node/disk_lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {
namespace {
constexpr int64_t kTakePatience_ms = 500;
constexpr int64_t kFirstRetry_ms = 50;
constexpr int64_t kLastRetry_ms = 5'000;
}  // namespace

std::string_view lane_counter_name(LaneCounter counter) {
  static constexpr std::array<std::string_view, kLaneCounterCount> kNames = {
      "offload_queued",  "offload_shed",     "offload_changed", "offload_already_there", "offload_too_large",
      "offload_skipped", "queue_hits",       "offload_written", "offload_write_dropped", "offload_write_retries",
      "offload_expired", "offload_released", "late_removals"};
  return kNames[static_cast<size_t>(counter)];
}

DiskLane::DiskLane(Config config, std::shared_ptr<Shared> shared)
    : config_(std::move(config)), shared_(std::move(shared)), queue_(config_.queue_bytes, config_.queue_records) {}

DiskLane::~DiskLane() {
  if (writer_.joinable()) writer_.detach();  // it is the one that runs this
}

std::shared_ptr<DiskLane> DiskLane::open(Config config, std::shared_ptr<Shared> shared, PosixFiles& files) {
  std::shared_ptr<DiskLane> lane = std::unique_ptr<DiskLane>(new DiskLane(std::move(config), std::move(shared)));
  // The disk belongs to the lane, so what it calls back lives.
  DiskLane* const raw = lane.get();
  DiskTierEvents events;
  events.log = lane->shared_->log;
  events.on_fence = [shared = lane->shared_] { shared->ring(); };
  events.before_keeping = [raw] { return raw->shared_->marks.now(); };
  events.keep = [raw](DiskRecord record, uint64_t ticket) { raw->offer(std::move(record), ticket); };
  auto opened = DiskTier::open(lane->config_.disk, std::move(events), files);
  if (!opened) {
    lane->reason_ = opened.error().text();
    lane->log(fmt::format("action=disk_not_used dir={} - {}; serving from memory without it", lane->directory(),
                          lane->reason_));
    return lane;
  }
  lane->disk_ = std::move(*opened);
  lane->writer_ = std::thread([lane] {
    lane->write_loop();
    const MutexLock lock(lane->mutex_);
    lane->finished_ = true;
    lane->changed_.notify_all();
  });
  return lane;
}

bool DiskLane::usable() const {
  if (disk_ == nullptr) return false;
  const DiskState state = disk_->state();
  return state == DiskState::serving || state == DiskState::recovering;
}

std::optional<DiskHit> DiskLane::get(std::string_view key, uint64_t hash, Deadline deadline) {
  if (disk_ == nullptr) return std::nullopt;
  if (std::optional<DiskRecord> waiting = queue_.find(key, hash)) {
    const int64_t now_ms = config_.disk.clock->wall_ns() / 1'000'000;
    if (waiting->expires_at_ms != 0 && waiting->expires_at_ms <= now_ms) return std::nullopt;
    add(LaneCounter::queue_hits);
    // It was asked for again right after its eviction: hot.
    return DiskHit{std::move(waiting->value), waiting->generation, waiting->expires_at_ms, waiting->flags, UINT8_MAX};
  }
  return disk_->read(key, hash, deadline);
}

bool DiskLane::refuses(uint64_t hash, uint64_t bytes) {
  if (!usable()) {
    add(LaneCounter::skipped);
  } else if (bytes > disk_->most_record_bytes()) {
    add(LaneCounter::too_large);
  } else if (disk_->contains(hash)) {
    add(LaneCounter::already_there);
  } else if (!queue_.has_room(bytes)) {
    add(LaneCounter::shed);
  } else {
    return false;
  }
  return true;
}

OffloadQueue::Offer DiskLane::offer(DiskRecord record, uint64_t ticket) {
  if (!usable()) {
    add(LaneCounter::skipped);
    return OffloadQueue::Offer::full;
  }
  const OffloadQueue::Offer answer = queue_.offer(std::move(record), *disk_, shared_->marks, ticket);
  switch (answer) {
    case OffloadQueue::Offer::queued: add(LaneCounter::queued); break;
    case OffloadQueue::Offer::full: add(LaneCounter::shed); break;
    case OffloadQueue::Offer::changed: add(LaneCounter::changed); break;
    case OffloadQueue::Offer::there: add(LaneCounter::already_there); break;
  }
  return answer;
}

Result<uint64_t> DiskLane::purge(std::span<const std::string> prefixes, Deadline deadline) {
  if (!usable()) {
    return fail(ErrorCode::unavailable, fmt::format("disk directory {} cannot be looked through: {}", directory(),
                                                    disk_ == nullptr ? reason_ : "it is fenced, suspended or closed"));
  }
  const size_t waiting = queue_.remove_prefixes(prefixes);
  // A batch that is being written may hold some: it becomes a bucket first.
  queue_.hurry();
  if (!queue_.wait_empty(deadline)) {
    return fail(ErrorCode::timeout, fmt::format("disk directory {}: objects are still being written", directory()));
  }
  auto on_disk = disk_->purge(prefixes, deadline);
  if (!on_disk) return on_disk;
  return waiting + *on_disk;
}

void DiskLane::kill(uint64_t hash, Deadline deadline) {
  if (disk_ == nullptr) return;
  queue_.remove(hash);
  const Deadline until = Deadline::earlier(deadline, Deadline::in_ms(config_.removal_wait_ms));
  if (!disk_->erase(hash, disk_->latest_generation(), until)) add(LaneCounter::late_removals);
}

// --- the writer ---

void DiskLane::wait_a_moment() {
  retry_ms_ = std::clamp(2 * retry_ms_, kFirstRetry_ms, kLastRetry_ms);
  const Deadline until = Deadline::in_ms(retry_ms_);
  const MutexLock lock(mutex_);
  while (!closing_ && !until.expired()) changed_.wait_until(mutex_, until);
}

void DiskLane::write(const std::vector<DiskRecord>& batch) {
  const auto written = disk_->write(batch, [this](const DiskRecord& record) { return queue_.alive(record); });
  if (written) {
    add(LaneCounter::written, *written);
    queue_.complete(batch);
    retry_ms_ = 0;
    return;
  }
  if (disk_->state() == DiskState::suspended) {
    queue_.put_back(batch);
    add(LaneCounter::write_retries);
  } else {
    add(LaneCounter::write_dropped, queue_.nack(batch));
    log(fmt::format("action=disk_write_failed dir={} objects={} - {}", directory(), batch.size(),
                    written.error().text()));
  }
  wait_a_moment();
}

void DiskLane::write_loop() {
  Deadline until;
  while (true) {
    const std::vector<DiskRecord> batch =
        queue_.take(disk_->most_record_bytes(), config_.flush_ms, Deadline::in_ms(kTakePatience_ms));
    if (!batch.empty()) write(batch);
    const MutexLock lock(mutex_);
    if (!closing_) continue;
    until = close_deadline_;
    if (queue_.records() == 0 || until.expired() || !usable()) break;
  }
  queue_.stop();
  queue_.release();
  disk_->close(until);
}

bool DiskLane::close(Deadline deadline) {
  if (disk_ == nullptr) return true;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    close_deadline_ = deadline;
    changed_.notify_all();
  }
  queue_.hurry();
  queue_.stop();
  bool finished = true;
  {
    const MutexLock lock(mutex_);
    while (!finished_ && finished) {
      if (!changed_.wait_until(mutex_, deadline) && !finished_) finished = false;
    }
  }
  if (finished) {
    writer_.join();
  } else {
    log(fmt::format("action=disk_close_late dir={} - a call on the disk has not come back; left to itself",
                    directory()));
  }
  return finished;
}

// --- the control thread's part ---

void DiskLane::expire_tasks() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (now_ns < next_expiry_ns_) return;
  next_expiry_ns_ = now_ns + std::min(config_.task_timeout_ms, kLastRetry_ms) * 1'000'000 / 4;
  const size_t expired = queue_.expire(config_.flush_ms + config_.task_timeout_ms);
  if (expired == 0) return;
  add(LaneCounter::expired, expired);
  log(fmt::format("action=offload_tasks_expired dir={} objects={} - not written within {} ms", directory(), expired,
                  config_.flush_ms + config_.task_timeout_ms));
}

void DiskLane::tick() {
  if (disk_ == nullptr) return;
  disk_->watch();
  expire_tasks();
  if (!disk_->fence().fenced()) return;
  if (!queue_released_ && fence_rule(FenceRule::kReleaseQueue)) {
    queue_released_ = true;
    const size_t released = queue_.release();
    add(LaneCounter::released, released);
    log(fmt::format("action=release_offload_queue dir={} objects={}", directory(), released));
  }
  disk_->release();
}

void DiskLane::log(const std::string& line) const {
  if (shared_->log) shared_->log(line);
}

}  // namespace ragfs
