// OffloadQueue: what waits to be written to one disk directory, and what is being written: the open tasks of its lane.
//
// A task is known by hash and generation. It ends in one of: complete (its bucket is readable), nack (the write was
// given up), remove (its key was changed), expire (its deadline passed: a disk that hangs holds no memory for ever) or
// release (all of them at once, after a fence). Whatever comes later for a task that ended changes nothing.
// An object is here from the moment the memory tier evicted it until its bucket is readable, so it can be read from
// here all the time. One object a hash; bounded by bytes and count: a full queue sheds. Removing an object whose bucket
// is being written keeps it from becoming readable (alive()). Not for: deciding what is worth writing. Thread-safety:
// all methods may be called from any thread; nothing blocks but take()
// and wait_empty().
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/store/disk/disk_tier.h"
#include "ragfs/store/memory/change_marks.h"

namespace ragfs {

class OffloadQueue {
 public:
  OffloadQueue(uint64_t most_bytes, size_t most_records) : most_bytes_(most_bytes), most_records_(most_records) {}

  // Cheap, before a value is copied; offer() decides.
  bool has_room(uint64_t bytes) const;

  enum class Offer : uint8_t { queued, full, changed, there };
  // Takes the record and gives it its generation, unless its key was changed since the ticket, or is here already.
  Offer offer(DiskRecord record, DiskTier& disk, const ChangeMarks& marks, uint64_t ticket);
  // The object that waits or is being written.
  std::optional<DiskRecord> find(std::string_view key, uint64_t hash) const;
  void remove(uint64_t hash);
  // Every object whose key begins with one of these; how many.
  size_t remove_prefixes(std::span<const std::string> prefixes);
  // True while the record, which was taken, has not been removed.
  bool alive(const DiskRecord& record) const;

  // What to write next, oldest first, up to `most_bytes` of records: when that much waits, when the oldest has waited
  // for `patience_ms`, or at once after hurry(). Empty after stop(), or when `until` came first.
  std::vector<DiskRecord> take(uint64_t most_bytes, int64_t patience_ms, Deadline until);
  // They were written.
  void complete(const std::vector<DiskRecord>& batch) { end(batch); }
  // They will not be; how many had not ended otherwise.
  size_t nack(const std::vector<DiskRecord>& batch) { return end(batch); }
  // Ends every task that is older than this, taken or not; how many.
  size_t expire(int64_t older_than_ms);
  // They are to be written later: back to the head of the queue.
  void put_back(const std::vector<DiskRecord>& batch);
  void hurry();
  // Lets everything go, and takes no more; how many. Those being written count as removed. An offer that looked at the
  // disk before its fence and comes after this is refused here.
  size_t release();
  // Waits until nothing waits or is written; false when the deadline came first.
  bool wait_empty(Deadline deadline);
  // take() answers at once from now on.
  void stop();

  size_t records() const;
  uint64_t bytes() const;

 private:
  size_t end(const std::vector<DiskRecord>& batch);
  struct Item {
    DiskRecord record;
    int64_t since_ns = 0;
    bool taken = false;
  };
  bool due(uint64_t most_bytes, int64_t patience_ms) RAGFS_REQUIRES(mutex_);
  void forget(std::unordered_map<uint64_t, Item>::iterator item) RAGFS_REQUIRES(mutex_);
  // The item of a place in the order, unless it was removed since.
  Item* item_at(const std::pair<uint64_t, uint64_t>& place) RAGFS_REQUIRES(mutex_);

  const uint64_t most_bytes_;
  const size_t most_records_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::unordered_map<uint64_t, Item> items_ RAGFS_GUARDED_BY(mutex_);
  std::deque<std::pair<uint64_t, uint64_t>> order_ RAGFS_GUARDED_BY(mutex_);  // hash and generation of what waits
  uint64_t bytes_ RAGFS_GUARDED_BY(mutex_) = 0;                               // of all items
  uint64_t waiting_bytes_ RAGFS_GUARDED_BY(mutex_) = 0;                       // of those not taken
  bool hurried_ RAGFS_GUARDED_BY(mutex_) = false;
  bool stopped_ RAGFS_GUARDED_BY(mutex_) = false;
  bool released_ RAGFS_GUARDED_BY(mutex_) = false;
};

}  // namespace ragfs
