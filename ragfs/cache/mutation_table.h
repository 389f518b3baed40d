// MutationTable: the mutation clock, the records, and what a reader has to compare a stamp with.
//
// Invariant: an object may be served only if its stamp is not below any record that covers its path and nothing that
// covers it was running, both as seen before the object was fetched. A mutation advances the clock after its backend
// call and sets its records to the new value; so bytes read from the backend before the mutation carry a smaller stamp.
//
// A reader's look-up (observe) costs one acquire load while no record exists; else one load for the object and one for
// each ancestor, leaf to root, so that a fold from child to parent (parent set first) is not missed. Buckets are shared
// by unrelated paths, so a bound may be too strict: then `observe_exactly` decides. Objects that passed are remembered
// by a tag, the greatest of three words: one of the object itself, changed by each mutation of it (and of a few others
// that hash to it), one of its shard, changed by each subtree mutation at or below a shard root, and one that those
// above shard roots change. An equal tag means that nothing that covers the object happened since.
//
// Bounds: at most `max_path_records` and `max_subtree_records`; beyond them, siblings fold into their parent's subtree
// record, inside their scope. What cannot fold makes overflowed() true: the owner starts a new epoch and calls reset().
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "ragfs/cache/key_space.h"
#include "ragfs/cache/path_trail.h"
#include "ragfs/cache/record_table.h"

namespace ragfs {

struct MutationTableLimits {
  size_t max_path_records = 1'048'576;
  size_t max_subtree_records = 65'536;
  size_t max_marked_keys = 65'536;
};

// A path in a backend's identity, with its ids and where its scope ends.
struct RecordPath {
  PathTrail trail;
  size_t scope_size = 1;  // number of trail ids up to and including the scope's root

  RecordPath(uint64_t root_id, PathView path);
};

// What a reader saw before its get.
struct Observation {
  RecordBound own;     // of the object itself
  RecordBound above;   // of the subtrees at or above it
  uint64_t tag = 0;    // 0: something that may cover the object runs
  bool exact = false;  // the bounds are of the path itself, not of buckets that it shares

  bool running() const { return own.running || above.running; }
  uint64_t newest() const { return own.value > above.value ? own.value : above.value; }
};

class MutationTable {
 public:
  explicit MutationTable(MutationTableLimits limits = {});

  uint64_t clock() const noexcept { return clock_.load(std::memory_order_seq_cst); }
  void restart_clock() noexcept { clock_.store(1, std::memory_order_seq_cst); }  // for a test of kClockKeptInLife
  uint64_t advance_clock() noexcept { return clock_.fetch_add(1, std::memory_order_seq_cst) + 1; }

  // No record exists: nothing is refused. One acquire load.
  bool empty() const noexcept { return population_.load(std::memory_order_acquire) == 0; }
  // Equal tags (but 0) mean that no mutation that covers the object came between. `kind`: file or listing.
  uint64_t tag(uint64_t root_id, PathView path, ObjectKind kind) const noexcept {
    return tag(PathTrail::id_at(root_id, path, kShardDepth), object_id(PathTrail::text_id(root_id, path), kind));
  }
  Observation observe(const PathTrail& trail, ObjectKind kind) const noexcept;
  Observation observe_exactly(const PathTrail& trail, ObjectKind kind) const;

  void begin(const RecordPath& path, ObjectKind kind);
  void end(const RecordPath& path, ObjectKind kind, uint64_t value);
  // Ends a mutation that never reached the backend: no record.
  void abandon(const RecordPath& path, ObjectKind kind);
  // A record without a running mark, for ancestors that are known to be affected only afterwards.
  void record(const RecordPath& path, ObjectKind kind, uint64_t value);

  // `epoch`: of the object whose put has an unknown outcome.
  void mark(const RecordPath& path, ObjectKind kind, int64_t until_ns, uint64_t epoch);
  size_t expire_marks(int64_t now_ns);
  size_t marked() const { return paths_.marked() + subtrees_.marked(); }

  // Lets a settled record go. See RecordTable::drop.
  bool drop(const PathTrail& trail, ObjectKind kind, uint64_t value);
  // After a sweep of all that subtree records cover: drops subtree records up to `through`.
  size_t drop_subtrees_through(uint64_t through) { return subtrees_.drop_through(through); }

  // Drops every record up to `through` that neither runs nor is marked: all objects that they refuse are gone.
  void drop_all_through(uint64_t through);

  // Folds while a table is over its limit.
  void enforce_limits();
  bool overflowed() const noexcept;
  // After a new epoch: every older object is refused by its epoch, so marks of other epochs may go, and records up to
  // `through`, the clock from before `epoch` became the current one.
  void reset(uint64_t through, uint64_t epoch);

  // The unsettled records and marks, and the clock; false when a mutation runs or there are more than `most` of either.
  bool save(DomainState& state, size_t most) const;
  // Goes on where an earlier life stopped. Before anything else is called.
  void resume(const DomainState& state);

  size_t path_records() const { return paths_.size(); }
  size_t subtree_records() const { return subtrees_.size(); }

 private:
  static constexpr size_t kShards = 4096;
  static constexpr size_t kShardDepth = 3;  // ids below the root that name a shard: /{account}/{kind}/{name}
  static constexpr size_t kObjectWords = 16'384;
  // A file object and a listing of one path have records and words of their own: each is settled by the erase of its
  // own key.
  static uint64_t object_id(uint64_t id, ObjectKind kind) noexcept {
    constexpr uint64_t kListingSalt = 0x9e3779b97f4a7c15ULL;
    return kind == ObjectKind::listing ? id ^ kListingSalt : id;
  }
  static uint64_t record_id(const PathTrail& trail, ObjectKind kind) noexcept { return object_id(trail.self(), kind); }
  static uint64_t shard_id(const PathTrail& trail) noexcept {
    return trail[trail.size() - 1 < kShardDepth ? trail.size() - 1 : kShardDepth];
  }
  uint64_t tag_of(const PathTrail& trail, ObjectKind kind) const noexcept {
    return tag(shard_id(trail), object_id(trail.text_id(), kind));
  }
  uint64_t tag(uint64_t shard, uint64_t object) const noexcept;
  // The word that a mutation changes.
  std::atomic<uint64_t>& word_of(const RecordPath& path, ObjectKind kind) noexcept;
  RecordTable& table(ObjectKind kind) { return kind == ObjectKind::subtree ? subtrees_ : paths_; }

  // Words are {running : 12 | clock : 52}, changed by compare-and-swap.
  static void begin_word(std::atomic<uint64_t>& word) noexcept;
  static void end_word(std::atomic<uint64_t>& word, uint64_t value) noexcept;

  const MutationTableLimits limits_;
  // A life starts above 0, so that stamp 0 is always older than any record and tag 0 never valid.
  std::atomic<uint64_t> clock_{1};
  std::atomic<uint64_t> population_{0};  // records in both tables
  std::atomic<uint64_t> all_shards_{1};
  std::unique_ptr<std::atomic<uint64_t>[]> shards_;
  std::unique_ptr<std::atomic<uint64_t>[]> objects_;
  RecordTable paths_;
  RecordTable subtrees_;
};

}  // namespace ragfs
