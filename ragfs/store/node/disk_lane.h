// DiskLane: one directory of a second tier: its disk tier, the queue in front of it and the thread that writes.
//
// A directory that cannot be used at start is a lane without a disk: everything misses, reason() says why. A fenced or
// suspended one likewise, with its disk kept or let go. The writer ends by closing the disk, so nobody who closes a
// lane waits for a disk that hangs: the thread keeps the lane until its call returns. Not for: choosing among
// directories, admission, promotion (SecondTier). Thread-safety: all methods may be called from any thread; tick() by
// one, close() once.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/base/sync.h"
#include "ragfs/store/disk/disk_tier.h"
#include "ragfs/store/memory/change_marks.h"
#include "ragfs/store/node/offload_queue.h"

namespace ragfs {

enum class LaneCounter : uint8_t {
  queued,
  shed,           // the queue was full
  changed,        // replaced or removed on the way
  already_there,  // the disk has it
  too_large,      // for a bucket
  skipped,        // fenced, suspended or without a disk
  queue_hits,     // read before they were written
  written,
  write_dropped,  // given up after a failed write
  write_retries,  // batches put back while the directory was suspended
  expired,        // waited or were being written for too long
  released,       // let go after a fence
  late_removals,  // answered before the log of removals had them
};
inline constexpr size_t kLaneCounterCount = static_cast<size_t>(LaneCounter::late_removals) + 1;
std::string_view lane_counter_name(LaneCounter counter);

class DiskLane {
 public:
  struct Config {
    DiskTierConfig disk;
    uint64_t queue_bytes = uint64_t{64} << 20;
    size_t queue_records = 65'536;
    int64_t flush_ms = 2'000;          // how long an object waits for its bucket to fill
    int64_t task_timeout_ms = 60'000;  // beyond that, until it is written or let go
    int64_t removal_wait_ms = 200;     // how long a removal waits for the log
  };
  // What outlives the lane's threads, because they hold it.
  struct Shared {
    ChangeMarks marks;
    StoreLog log;
    Mutex mutex;
    CondVar wake;  // of the control thread
    bool woken RAGFS_GUARDED_BY(mutex) = false;
    void ring() {
      const MutexLock lock(mutex);
      woken = true;
      wake.notify_all();
    }
  };

  static std::shared_ptr<DiskLane> open(Config config, std::shared_ptr<Shared> shared, PosixFiles& files);
  ~DiskLane();
  DiskLane(const DiskLane&) = delete;
  DiskLane& operator=(const DiskLane&) = delete;

  // nullptr without a disk.
  DiskTier* disk() const { return disk_.get(); }
  // Reads and writes are tried.
  bool usable() const;
  // Why the directory was not taken at start; "" when it was.
  const std::string& reason() const { return reason_; }
  const std::string& directory() const { return config_.disk.directory; }

  std::optional<DiskHit> get(std::string_view key, uint64_t hash, Deadline deadline);
  // True if a copy need not be written (any more): the disk has it, or it cannot be taken. Cheap.
  bool refuses(uint64_t hash, uint64_t bytes);
  // Queues a record without a generation; see ChangeMarks for the ticket.
  OffloadQueue::Offer offer(DiskRecord record, uint64_t ticket);
  // No copy of the hash is found any more. Called between begin() and end() of a change.
  void kill(uint64_t hash, Deadline deadline);

  // SecondTier::purge() of this directory.
  Result<uint64_t> purge(std::span<const std::string> prefixes, Deadline deadline);

  // For the control thread: looks for hung calls, and brings about the effects of a fence, step by step, until all
  // are done.
  void tick();
  // Writes what waits, closes the disk, ends the writer; false when the deadline came first: the rest is left to it.
  bool close(Deadline deadline);

  OffloadQueue& queue() { return queue_; }
  const OffloadQueue& queue() const { return queue_; }
  uint64_t count(LaneCounter counter) const { return counters_[static_cast<size_t>(counter)].load(); }

 private:
  DiskLane(Config config, std::shared_ptr<Shared> shared);
  void write_loop();
  void write(const std::vector<DiskRecord>& batch);
  void wait_a_moment();
  void expire_tasks();
  void add(LaneCounter counter, uint64_t by = 1) { counters_[static_cast<size_t>(counter)].fetch_add(by); }
  void log(const std::string& line) const;

  const Config config_;
  const std::shared_ptr<Shared> shared_;
  OffloadQueue queue_;
  std::unique_ptr<DiskTier> disk_;
  std::string reason_;
  std::array<std::atomic<uint64_t>, kLaneCounterCount> counters_{};
  bool queue_released_ = false;  // of the control thread
  int64_t next_expiry_ns_ = 0;   // the same
  int64_t retry_ms_ = 0;         // of the writer: 0 = the last write succeeded
  mutable Mutex mutex_;
  CondVar changed_;
  bool closing_ RAGFS_GUARDED_BY(mutex_) = false;
  bool finished_ RAGFS_GUARDED_BY(mutex_) = false;
  Deadline close_deadline_ RAGFS_GUARDED_BY(mutex_);
  std::thread writer_;
};

}  // namespace ragfs
