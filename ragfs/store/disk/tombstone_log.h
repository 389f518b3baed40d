// TombstoneLog: what was removed or replaced while a bucket still holds its bytes, so that no restart brings it back.
//
// append() hands a tombstone to the log's thread and waits until write() took it, so it outlives this process (kill -9)
// by the time a removal is acknowledged; callers that come together share one write. A disk that hangs or fails delays
// nobody past his deadline: what is not written stays pending and is tried again, and the life is then not closed as
// clean. Bounded: compact() drops what no bucket needs any more. Not for: deciding what is dead in this life (the index
// does). Thread-safety: all methods may be called from any thread, load() and close() by one.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"
#include "ragfs/store/disk/bucket_format.h"
#include "ragfs/store/disk/disk_io.h"

namespace ragfs {

class TombstoneLog {
 public:
  TombstoneLog(DiskIo& io, const Hash128& store) : io_(io), store_(store) {}
  ~TombstoneLog();
  TombstoneLog(const TombstoneLog&) = delete;
  TombstoneLog& operator=(const TombstoneLog&) = delete;

  struct Loaded {
    bool missing = false;
    bool damaged = false;  // what was removed is not known: no old bucket may be served
    std::vector<Tombstone> tombstones;
  };
  // Reads the log and changes nothing. Errors: io.
  Result<Loaded> load();
  // Begins a log of these and starts the thread. When load() said `damaged` or `missing`, every old bucket must be out
  // of the way before. Errors: io.
  Result<void> begin(const std::vector<Tombstone>& kept);

  // True when it is written; false when the deadline came first or the disk refused (it stays pending).
  bool append(uint64_t hash, uint64_t generation, Deadline deadline);
  // Rewrites the log without tombstones below `oldest_generation`, the oldest that any bucket holds.
  void request_compaction(uint64_t oldest_generation);
  // The directory is given up: nothing more is written or waited for, and the file is closed as soon as the call that
  // is under way returns.
  void give_up();
  // Waits for what is pending, syncs, ends the thread. True if everything is on the disk.
  bool close(Deadline deadline);

  uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  uint64_t pending() const;
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  void run();
  bool write_batch(const std::vector<Tombstone>& batch);
  void compact(uint64_t oldest_generation);
  int begin_file(const std::vector<Tombstone>& kept);

  DiskIo& io_;
  const Hash128 store_;
  OwnedFd fd_;  // of the log's thread, once it runs
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Tombstone> pending_ RAGFS_GUARDED_BY(mutex_);
  uint64_t appended_ RAGFS_GUARDED_BY(mutex_) = 0;  // handed in
  uint64_t written_ RAGFS_GUARDED_BY(mutex_) = 0;   // of them, in order
  uint64_t compact_below_ RAGFS_GUARDED_BY(mutex_) = 0;
  bool stopping_ RAGFS_GUARDED_BY(mutex_) = false;
  bool given_up_ RAGFS_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> failures_{0};
  std::thread thread_;
};

}  // namespace ragfs
