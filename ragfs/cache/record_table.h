// RecordTable: for each recently mutated path, the clock value of its last mutation and how many mutations run now.
//
// Two of them make up the mutation table (mutation_table.h): one for exact objects, one for subtrees.
//
// Layout and memory order. 65,536 buckets. Each has an atomic word, {running marks : 16 | greatest value : 48}, over
// the records that hash to it, and a chain of records guarded by one of 256 stripe mutexes. A reader looks at the word
// alone (one acquire load); because several ids share a bucket the word may be too strict, never too lax, and the
// reader then asks exact(), which takes the stripe. Writers change the chain and then publish the word with a
// sequentially consistent store while holding the stripe: a reader that sees the word of a dropped record also sees the
// provider erase that let it go. Bounds: the caller bounds the number of records (MutationTable folds). Thread-safety:
// all methods may be called from any thread. No method blocks for longer than a short critical section.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/domain_state.h"

namespace ragfs {

// What a look-up says: objects with a stamp below `value` are stale, and while `running` nothing may be served.
struct RecordBound {
  uint64_t value = 0;
  bool running = false;

  void include(RecordBound other) {
    if (other.value > value) value = other.value;
    running = running || other.running;
  }
};

// Who a record is for. `ancestors` are the ids above it that lie inside its scope, outermost first: where it may fold.
struct RecordName {
  uint64_t id = 0;
  std::span<const uint64_t> ancestors;
};

class RecordTable {
 public:
  // Adds its number of records to `population`, which must outlive it.
  explicit RecordTable(std::atomic<uint64_t>& population);
  ~RecordTable();
  RecordTable(const RecordTable&) = delete;
  RecordTable& operator=(const RecordTable&) = delete;

  // The bucket's bound: never laxer than exact(). No lock.
  RecordBound bucket(uint64_t id) const noexcept {
    const uint64_t word = buckets_[index_of(id)].word.load(std::memory_order_acquire);
    return {word & kValueMask, (word >> kValueBits) != 0};
  }
  RecordBound exact(uint64_t id) const;

  // A mutation of `name` begins.
  void begin(const RecordName& name);
  // It ends: the record becomes max(record, value), the running mark goes, in one step for readers.
  void end(const RecordName& name, uint64_t value);
  // Takes the running mark off without a record (tests of a rule; a mutation that never reached the backend).
  void unmark(uint64_t id);
  // Sets a record without a running mark: ancestors known only afterwards, folds.
  void set(const RecordName& name, uint64_t value);

  // A put of an object of `epoch` has an unknown outcome: the record is kept (made, if there is none) until `until_ns`
  // or drop_marks_but() with another epoch.
  void mark(const RecordName& name, int64_t until_ns, uint64_t epoch);
  // Takes marks off that end at or before `now_ns`; the number left.
  size_t expire_marks(int64_t now_ns);
  // Takes off the marks of every epoch but one.
  void drop_marks_but(uint64_t epoch);

  // Drops the record if its value is still `value`, nothing runs and it is not marked. True when it is gone.
  bool drop(uint64_t id, uint64_t value);
  // Drops every record for which that holds and value <= `through`.
  size_t drop_through(uint64_t through);
  // Up to `limit` records that may fold (not running, not marked, with an ancestor in their scope) go to `fold`, which
  // sets the parent; each is dropped afterwards unless it changed. Returns how many were dropped.
  // `fold` runs without a lock of this table.
  size_t fold(size_t limit, const std::function<void(const RecordName& parent, uint64_t value)>& fold);

  // All records; nothing when a mutation runs, or when there are more than `most`.
  std::optional<std::vector<RecordSnapshot>> snapshot(size_t most) const;
  // Puts a record of an earlier life back, marked for objects of `epoch` if it was.
  void restore(const RecordSnapshot& record, uint64_t epoch);

  size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  size_t marked() const noexcept { return marked_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kBucketBits = 16;
  static constexpr size_t kBuckets = size_t{1} << kBucketBits;
  static constexpr size_t kStripes = 256;
  static constexpr unsigned kValueBits = 48;  // 2.8e14 mutations in one life
  static constexpr uint64_t kValueMask = (uint64_t{1} << kValueBits) - 1;

  struct Record {
    uint64_t id = 0;
    uint64_t value = 0;
    int64_t marked_until_ns = 0;  // 0 = not marked
    uint64_t marked_epoch = 0;    // of the latest mark
    uint32_t running = 0;
    std::vector<uint64_t> ancestors;
    std::unique_ptr<Record> next;
  };
  struct Bucket {
    std::atomic<uint64_t> word{0};
    std::unique_ptr<Record> head;  // guarded by the stripe of the bucket
  };

  static size_t index_of(uint64_t id) noexcept { return id & (kBuckets - 1); }
  Mutex& stripe_of(uint64_t id) const { return stripes_[index_of(id) % kStripes]; }
  static Record* find(const Bucket& bucket, uint64_t id);
  Record& find_or_add(Bucket& bucket, const RecordName& name);
  bool droppable(const Record& record) const;
  static void publish(Bucket& bucket);
  // Takes off the marks for which `over` says so; the number left.
  size_t unmark_if(const std::function<bool(const Record&)>& over);
  // Removes records of one bucket for which `gone` says so; the stripe is held.
  size_t remove_if(Bucket& bucket, const std::function<bool(const Record&)>& gone);

  std::atomic<uint64_t>& population_;
  std::atomic<size_t> size_{0};
  std::atomic<size_t> marked_{0};
  std::atomic<size_t> fold_cursor_{0};
  std::unique_ptr<Bucket[]> buckets_;
  mutable std::array<Mutex, kStripes> stripes_;
};

}  // namespace ragfs
