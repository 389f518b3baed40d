// DiskTier: a cache of objects in append-only buckets in one directory, with a hard budget.
//
// Write path: write() takes a batch, packs it into one bucket (data, fdatasync, then meta by temporary, fsync, rename,
// fsync of the directory) and only then lets reads find it. Read path: read() probes the index, makes one aligned read
// on a thread of the pool and checks key, generation and checksum; whatever is not intact is a miss. erase() makes a
// copy unreachable at once and for all later lives (deaths.h, tombstone_log.h). Buckets are evicted oldest first, on a
// thread of their own, which hands the hot ones of their objects back. Recovery runs beside all of this. docs/store.md
// says what an operator sees of it, docs/formats.md what lies in the directory.
// A failing or hung disk never makes a call fail: reads miss, writes say why nothing was kept.
// Not for: deciding what is worth keeping, or when to write (StoreNode).
// Thread-safety: all methods may be called from any thread, close() included.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/store/disk/bucket_format.h"
#include "ragfs/store/disk/bucket_set.h"
#include "ragfs/store/disk/deaths.h"
#include "ragfs/store/disk/disk_fence.h"
#include "ragfs/store/disk/disk_index.h"
#include "ragfs/store/disk/disk_io.h"
#include "ragfs/store/disk/owned_directory.h"
#include "ragfs/store/disk/read_pool.h"
#include "ragfs/store/disk/tombstone_log.h"

namespace ragfs {

struct DiskTierConfig {
  static constexpr uint64_t kLeastBucketBytes = 64 * 1024;
  static constexpr uint64_t kMostBucketBytes = uint64_t{1} << 30;

  std::string directory;                          // must exist; ours alone
  uint64_t capacity_bytes = uint64_t{8} << 30;    // of all our files; at least four buckets
  uint64_t bucket_bytes = uint64_t{32} << 20;     // data of one bucket; 64 KiB to 1 GiB
  uint64_t min_free_bytes = uint64_t{256} << 20;  // of the file system, left to others
  uint32_t read_threads = 8;                      // reads at once, and threads that a hung disk can hold; 1 to 256
  uint32_t read_queue = 128;                      // waiting reads; beyond, a read is a miss
  int64_t hang_timeout_ms = 5'000;                // a call under way for longer suspends the directory
  int64_t syncfs_interval_ms = 10'000;            // at most one syncfs in this time
  uint64_t most_tombstones = uint64_t{1} << 20;   // in the log, before it is compacted
  uint32_t most_buckets = 65'536;                 // beyond, the oldest goes
  uint32_t most_open_files = 4'096;               // descriptors that are kept
  bool io_uring = true;                           // where the kernel has it; else threads read
  bool direct_io = true;                          // past the page cache, where the file system can
  const Clock* clock = &Clock::system();          // must outlive the tier

  // Errors: config; the message names the field, its value and what is allowed.
  Result<void> validate() const;
};

// One object on its way to the disk.
struct DiskRecord {
  uint64_t hash = 0;  // hash64(key)
  std::string key;    // 1 to 255 bytes
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;  // since 1970; 0 = never
  uint8_t flags = 0;          // kRecordPreferred
  Bytes value;
};

struct DiskHit {
  Bytes value;
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;
  uint8_t flags = 0;
  uint8_t hits = 0;  // with this one
};

enum class DiskCounter : uint8_t {
  hits,
  misses,  // with all below
  expired,
  corrupt_records,  // of a wrong checksum, key length or generation: dropped
  vanished_files,
  read_errors,  // a system call failed
  short_reads,
  read_timeouts,  // the deadline came first
  reads_shed,     // the queue was full
  reads_skipped,  // fenced, suspended or closed: no system call was made
  buckets_written,
  records_written,
  bytes_written,   // to data and meta files
  payload_bytes,   // of them, values
  write_failures,  // buckets given up
  writes_without_room,
  buckets_evicted,
  records_evicted,
  records_reinserted,  // of them, handed back because they were hot
  erased,
  recovered_records,
  recovered_buckets,
  quarantined_buckets,
  recovery_skipped,  // buckets that could not be read now: left as they are
  strays,            // buckets that could be neither read nor removed: every removal is logged for their sake
  orphans_removed,
  direct_fallbacks,
  probes,
};
inline constexpr size_t kDiskCounterCount = static_cast<size_t>(DiskCounter::probes) + 1;
std::string_view disk_counter_name(DiskCounter counter);

enum class DiskState : uint8_t { serving, recovering, suspended, fenced, closed };
std::string_view disk_state_name(DiskState state);

struct DiskTierEvents {
  StoreLog log;
  std::function<void()> on_fence;  // once; must not block
  // Eviction is about to read hot objects, to keep them: the answer comes back with them. On the evictor's thread.
  std::function<uint64_t()> before_keeping;
  std::function<void(DiskRecord record, uint64_t ticket)> keep;
};

class DiskTier {
 public:
  // Takes the directory and starts recovery in the background. Errors: config; and those of OwnedDirectory::open():
  // then serve without a disk, and tell the operator.
  static Result<std::unique_ptr<DiskTier>> open(DiskTierConfig config, DiskTierEvents events,
                                                PosixFiles& files = PosixFiles::system());
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  // nullopt = miss, whatever the reason.
  std::optional<DiskHit> read(std::string_view key, uint64_t hash, Deadline deadline);
  // True if the index has it; says nothing of the disk.
  bool contains(uint64_t hash) { return index_.peek(hash).has_value(); }

  // Writes the records as one bucket; their bytes, as bytes_of() counts, are at most most_record_bytes(). Nothing of it
  // is readable before all of it is on the disk. What erase() was called for after write() began never becomes
  // readable; `alive` is asked, once for each record, for what was removed or replaced before. Blocks for the disk;
  // makes room first. Answers how many are readable now.
  // Errors: unavailable (fenced, suspended, closed), full (no room), io.
  Result<size_t> write(std::span<const DiskRecord> records, const std::function<bool(const DiskRecord&)>& alive);
  // Bytes of a record in a bucket, at most.
  static uint64_t bytes_of(const DiskRecord& record) { return record_bytes(record.key.size(), record.value.size()); }
  uint64_t most_record_bytes() const { return config_.bucket_bytes - kBlockBytes; }

  // No copy of the hash with this generation or an older one is found any more, in this life or a later one. Where
  // there may be one, waits for the log until the deadline; false if the log does not have it by then, so that only a
  // later incarnation is safe from it. Costs next to nothing where there is none.
  bool erase(uint64_t hash, uint64_t generation, Deadline deadline);

  // Takes out every bucket whose data holds a key with one of `prefixes`, dead copies included; its other objects are
  // handed back (`keep`). Files that were set aside as damaged go too. How many objects of these keys could still be
  // read. Waits for recovery. Errors: timeout (run it again); unavailable (fenced, suspended, closed); io (a file
  // cannot be read or removed).
  Result<uint64_t> purge(std::span<const std::string> prefixes, Deadline deadline);

  // Looks for hung calls; called regularly by the control thread. Answers whether the directory is suspended.
  bool watch();
  // Gives up descriptors and index after a fence.
  void release();
  // Ends all threads; notes an orderly end if everything is on the disk. Idempotent.
  void close(Deadline deadline);

  DiskState state() const;
  bool recovering() const { return recovering_.load(); }
  bool wait_recovered(Deadline deadline);
  // For a record that is to be written: above all of this life and of earlier ones.
  uint64_t next_generation() { return generation_.fetch_add(1) + 1; }
  // What erase() is given to kill every copy that there is.
  uint64_t latest_generation() const { return generation_.load(); }
  const OwnerRecord& owner() const { return directory_.owner(); }
  bool was_clean() const { return directory_.was_clean(); }
  DiskFence& fence() { return *fence_; }
  const DiskFence& fence() const { return *fence_; }

  const DiskTierConfig& config() const { return config_; }
  uint64_t count(DiskCounter counter) const { return counters_[static_cast<size_t>(counter)].load(); }
  uint64_t errors(DiskOp op) const { return io_->errors(op); }
  uint64_t objects() const { return index_.size(); }
  uint64_t used_bytes() const;
  uint64_t index_bytes() const { return index_.memory_bytes(); }
  size_t buckets() const { return buckets_->count(); }
  const TombstoneLog& tombstones() const { return *tombstones_; }
  int64_t recovery_ns() const { return recovery_ns_.load(); }

 private:
  struct ReadJob;

  DiskTier(DiskTierConfig config, DiskTierEvents events) : config_(std::move(config)), events_(std::move(events)) {}
  Result<void> begin(PosixFiles& files);
  Result<void> begin_log(std::vector<uint32_t>& metas);
  bool usable() const;
  void add(DiskCounter counter, uint64_t by = 1) { counters_[static_cast<size_t>(counter)].fetch_add(by); }
  int64_t wall_ms() const { return config_.clock->wall_ns() / 1'000'000; }
  void log(const std::string& line) const {
    if (events_.log) events_.log(line);
  }

  // disk_read.cc
  std::optional<DiskHit> miss(DiskCounter why);
  ReadPool::Outcome perform_here_or_in_pool(const std::shared_ptr<ReadJob>& job, Deadline deadline);
  void perform(ReadJob& job);
  std::optional<DiskHit> judge(ReadJob& job, std::string_view key);

  // disk_probe.cc
  void note_read(bool good);
  void note_failed_write(int result);
  void probe_if_due();
  int probe();

  // disk_write.cc
  Result<void> write_refused(int result) const;
  int write_data(uint32_t id, std::span<const DiskRecord> records, std::vector<MetaEntry>& entries, uint64_t& bytes);
  size_t adopt_bucket(uint32_t id, uint64_t data_bytes, std::span<const MetaEntry> entries);
  void remove_files(uint32_t id);
  int open_data(const std::string& name, OwnedFd& fd);
  int publish_meta(uint32_t id, std::string_view meta);
  void give_up_bucket(uint32_t id, int result);

  // disk_evict.cc
  void evict_loop();
  void wake_evictor();
  bool has_room(uint64_t bytes, bool& overfull);
  bool wait_for_room(uint64_t bytes);
  bool evict_oldest();
  void take_out(const Bucket& bucket, const BucketMeta* meta);
  // Records of the bucket that `wanted` takes (by their index entries), up to so many bytes of them.
  std::vector<DiskRecord> read_records(const Bucket& bucket, const BucketMeta& meta, uint64_t most_bytes,
                                       const std::function<bool(const DiskEntry&)>& wanted);
  std::vector<DiskRecord> read_hot(const Bucket& bucket, const BucketMeta& meta);
  void compact_log();
  void note_stray(uint32_t id);
  void retry_strays();
  bool remove_quarantined();
  int read_meta(uint32_t id, std::optional<BucketMeta>& meta);

  // disk_purge.cc
  Result<bool> holds_any(const Bucket& bucket, std::span<const std::string> prefixes, Deadline deadline);
  Result<uint64_t> purge_bucket(const Bucket& bucket, std::span<const std::string> prefixes);

  // disk_recover.cc
  void recover(const std::vector<uint32_t>& metas);
  int sort_out(std::vector<uint32_t>& metas);
  void recover_bucket(uint32_t id);
  bool quarantine(uint32_t id, std::string_view why);

  const DiskTierConfig config_;
  const DiskTierEvents events_;
  HangWatch watch_;
  std::unique_ptr<DiskFence> fence_;
  std::unique_ptr<DiskIo> io_;
  OwnedDirectory directory_;
  std::unique_ptr<BucketSet> buckets_;
  std::unique_ptr<TombstoneLog> tombstones_;
  std::unique_ptr<ReadPool> readers_;
  std::unique_ptr<RingPool> rings_;  // nullptr = none: all reads go to the pool
  DiskIndex index_;
  Deaths deaths_;
  std::array<std::atomic<uint64_t>, kDiskCounterCount> counters_{};
  std::atomic<uint32_t> next_bucket_{0};
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint32_t> bad_reads_in_a_row_{0};
  int64_t next_probe_ns_ = 0;  // of the evictor's thread
  std::atomic<bool> suspended_{false};
  std::atomic<bool> closing_{false};
  std::atomic<bool> recovering_{true};
  std::atomic<int64_t> recovery_ns_{0};
  std::atomic<uint64_t> quarantined_bytes_{0};

  Mutex mutex_;
  CondVar changed_;
  bool closed_ RAGFS_GUARDED_BY(mutex_) = false;
  bool room_wanted_ RAGFS_GUARDED_BY(mutex_) = false;
  uint64_t wanted_bytes_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t evictions_done_ RAGFS_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> quarantined_ RAGFS_GUARDED_BY(mutex_);
  // Buckets that may lie in the directory without being in the index. While there are any, every removal is logged.
  std::vector<uint32_t> strays_ RAGFS_GUARDED_BY(mutex_);
  std::atomic<bool> has_strays_{false};
  // Open until recovery is over.
  std::unique_ptr<Deaths::Window> recovery_window_;

  std::thread evictor_;
  std::thread recoverer_;
};

}  // namespace ragfs
