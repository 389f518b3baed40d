// SecondTier: local disks behind a memory tier: what is evicted goes there, what is missed is looked for there.
//
// An object that the memory tier evicts is offered; admission by second touch (touch_filter.h) keeps out what was used
// once; the offer waits in its directory's bounded queue, or is shed. A disk hit that proves hot goes back to memory.
// Every change of a key runs inside a Change, which kills its copies here before the change takes effect; copies on
// their way between the tiers are checked against it (change_marks.h). So a get that begins after a put or erase
// returned never finds an older value, nor does a later process.
// Objects are placed by hash over the directories, for good: a directory that is fenced takes its share out of service
// and nothing moves, so no copy can come back when it does.
// Not for: the memory tier's own work. Disks never make a call fail: reads miss, offers are counted.
// Thread-safety: all methods may be called from any thread, close() once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ragfs/store/memory/memory_tier.h"
#include "ragfs/store/node/disk_lane.h"
#include "ragfs/store/node/touch_filter.h"

namespace ragfs {

struct SecondTierConfig {
  static constexpr size_t kMostDirectories = 16;

  std::vector<DiskTierConfig> disks;          // 1 to 16 directories
  bool admit_all = false;                     // else by second touch
  bool offload_on_put = false;                // objects are offered when they are put, not only when they are evicted
  uint32_t promote_hits = 2;                  // disk hits after which an object goes back to memory; 0 = never
  uint64_t queue_bytes = uint64_t{64} << 20;  // waiting and being written, of each directory
  size_t queue_records = 65'536;              // the same, in objects
  int64_t flush_ms = 2'000;                   // how long an object waits for its bucket to fill
  int64_t task_timeout_ms = 60'000;           // beyond flush_ms, until it is written or let go
  int64_t read_timeout_ms = 1'000;            // a disk read that takes longer is a miss
  int64_t removal_wait_ms = 200;              // how long a removal waits for the log
  const Clock* clock = &Clock::system();      // must outlive the tier

  // Errors: config; the message names the field, its value and what is allowed.
  Result<void> validate() const;
};

struct NamedCount {
  std::string name;
  uint64_t value = 0;
  std::string labels = {};  // as Prometheus writes them; "" = none
};

class SecondTier final : public EvictionSink {
 public:
  // Opens every directory; one that cannot be used is left out and logged. Errors: config.
  static Result<std::unique_ptr<SecondTier>> open(SecondTierConfig config, StoreLog log,
                                                  PosixFiles& files = PosixFiles::system());
  ~SecondTier() override;
  SecondTier(const SecondTier&) = delete;
  SecondTier& operator=(const SecondTier&) = delete;

  // The memory tier in front, whose sink this is; before anything else, and until close().
  void attach(MemoryTier& memory) { memory_ = &memory; }

  // nullopt = miss.
  std::optional<Bytes> get(std::string_view key, uint64_t hash, Deadline deadline);

  // Around every put and erase of a key: kills its copies at once; until it ends, none can be made.
  class Change {
   public:
    Change(SecondTier& tier, uint64_t hash, Deadline deadline) : tier_(&tier), hash_(hash) {
      tier.begin(hash, deadline);
    }
    Change(Change&& other) noexcept : tier_(std::exchange(other.tier_, nullptr)), hash_(other.hash_) {}
    ~Change() {
      if (tier_ != nullptr) tier_->shared_->marks.end(hash_);
    }
    Change& operator=(Change&&) = delete;

   private:
    SecondTier* tier_;
    uint64_t hash_;
  };

  // The key was put, and the Change around that has ended: with offload_on_put what memory holds of it is offered.
  void was_put(std::string_view key, uint64_t hash);

  uint64_t before_eviction() noexcept override { return shared_->marks.now(); }
  void evicted(const EvictedObject& object, uint64_t ticket) override;

  // Nothing acknowledged is gone since a process had this id: "" where that cannot be said.
  std::string incarnation() const;
  // Removes the objects whose keys begin with one of `prefixes`, and their bytes from every directory; how many copies.
  // Errors: unavailable naming a directory that cannot be looked through now; timeout; io.
  Result<uint64_t> purge(std::span<const std::string> prefixes, Deadline deadline);
  // Waits until what is queued now is written or given up.
  bool flush(Deadline deadline);
  // Writes what memory holds, most promising first, as far as the deadline lets it, then closes the directories.
  void close(Deadline deadline);

  // One sentence for each directory that is not in use.
  std::vector<std::string> warnings() const;
  // Totals over the directories, and for each directory its gauges, with `dir` among the labels.
  std::vector<NamedCount> metrics() const;
  const std::vector<std::shared_ptr<DiskLane>>& lanes() const { return lanes_; }

 private:
  SecondTier(SecondTierConfig config, StoreLog log);
  DiskLane& lane_for(uint64_t hash) const { return *lanes_[mix64(hash) % lanes_.size()]; }
  void begin(uint64_t hash, Deadline deadline);
  DiskRecord record_of(const EvictedObject& object) const;
  void promote(std::string_view key, uint64_t hash, const DiskHit& hit, uint64_t ticket);
  void flush_memory(bool small, Deadline deadline);
  void control_loop();

  const SecondTierConfig config_;
  const std::shared_ptr<DiskLane::Shared> shared_;
  std::vector<std::shared_ptr<DiskLane>> lanes_;
  MemoryTier* memory_ = nullptr;
  TouchFilter touched_;
  std::atomic<uint64_t> untouched_{0};
  std::atomic<uint64_t> promotions_{0};
  std::atomic<uint64_t> promotions_refused_{0};
  std::atomic<bool> closed_{false};
  std::thread control_;
};

}  // namespace ragfs
