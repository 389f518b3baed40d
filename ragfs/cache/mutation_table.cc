#include "ragfs/cache/mutation_table.h"

#include <algorithm>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

constexpr unsigned kWordClockBits = 52;
constexpr uint64_t kWordClockMask = (uint64_t{1} << kWordClockBits) - 1;
constexpr uint64_t kWordRunning = uint64_t{1} << kWordClockBits;

size_t ids_in(PathView path, size_t prefix_bytes) {
  const std::string_view prefix = path.text().substr(0, prefix_bytes);
  return prefix.size() <= 1 ? 1 : 1 + static_cast<size_t>(std::count(prefix.begin(), prefix.end(), '/'));
}

}  // namespace

RecordPath::RecordPath(uint64_t root_id, PathView path)
    : trail(root_id, path), scope_size(ids_in(path, scope_length(path))) {}

MutationTable::MutationTable(MutationTableLimits limits)
    : limits_(limits),
      shards_(std::make_unique<std::atomic<uint64_t>[]>(kShards)),
      objects_(std::make_unique<std::atomic<uint64_t>[]>(kObjectWords)),
      paths_(population_),
      subtrees_(population_) {
  for (size_t i = 0; i < kShards; ++i) shards_[i].store(1, std::memory_order_relaxed);
}

std::atomic<uint64_t>& MutationTable::word_of(const RecordPath& path, ObjectKind kind) noexcept {
  if (kind != ObjectKind::subtree) return objects_[object_id(path.trail.text_id(), kind) % kObjectWords];
  return path.trail.size() - 1 < kShardDepth ? all_shards_ : shards_[shard_id(path.trail) % kShards];
}

void MutationTable::begin_word(std::atomic<uint64_t>& word) noexcept {
  word.fetch_add(kWordRunning, std::memory_order_seq_cst);
}

void MutationTable::end_word(std::atomic<uint64_t>& word, uint64_t value) noexcept {
  uint64_t seen = word.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    next = (seen & ~kWordClockMask) - kWordRunning + std::max(seen & kWordClockMask, value);
  } while (!word.compare_exchange_weak(seen, next, std::memory_order_seq_cst));
}

uint64_t MutationTable::tag(uint64_t shard_id, uint64_t object_id) const noexcept {
  const uint64_t object = objects_[object_id % kObjectWords].load(std::memory_order_acquire);
  const uint64_t shard = shards_[shard_id % kShards].load(std::memory_order_acquire);
  const uint64_t all = all_shards_.load(std::memory_order_acquire);
  if (((object | shard | all) >> kWordClockBits) != 0) return 0;
  // A word's new value is taken from the clock after it was marked as running: it is above every tag that was seen
  // before, so the greatest of the three changes whenever one of them does.
  return std::max({object, shard, all});
}

Observation MutationTable::observe(const PathTrail& trail, ObjectKind kind) const noexcept {
  Observation seen;
  if (empty()) {
    seen.exact = true;
    return seen;
  }
  seen.tag = tag_of(trail, kind);
  seen.own = paths_.bucket(record_id(trail, kind));
  if (!rule_enabled(Rule::kSubtreeCheck)) return seen;
  if (rule_enabled(Rule::kLeafBeforeRoot)) {
    for (size_t i = trail.size(); i-- > 0;) seen.above.include(subtrees_.bucket(trail[i]));
  } else {
    for (size_t i = 0; i < trail.size(); ++i) seen.above.include(subtrees_.bucket(trail[i]));
  }
  return seen;
}

Observation MutationTable::observe_exactly(const PathTrail& trail, ObjectKind kind) const {
  Observation seen;
  seen.exact = true;
  seen.tag = tag_of(trail, kind);
  seen.own = paths_.exact(record_id(trail, kind));
  if (!rule_enabled(Rule::kSubtreeCheck)) return seen;
  if (rule_enabled(Rule::kLeafBeforeRoot)) {
    for (size_t i = trail.size(); i-- > 0;) {
      if (i + 2 == trail.size()) RAGFS_PAUSE_POINT("observe.between_leaf_and_root");
      seen.above.include(subtrees_.exact(trail[i]));
    }
  } else {
    for (size_t i = 0; i < trail.size(); ++i) {
      if (i + 2 == trail.size()) RAGFS_PAUSE_POINT("observe.between_leaf_and_root");
      seen.above.include(subtrees_.exact(trail[i]));
    }
  }
  return seen;
}

namespace {

// The ids above the record that are at or below its scope's root: a fold stays inside the scope.
RecordName name_of(const RecordPath& path, uint64_t id) {
  const size_t size = path.trail.size();
  if (size <= path.scope_size) return {id, {}};
  return {id, {path.trail.ids() + path.scope_size - 1, size - path.scope_size}};
}

}  // namespace

void MutationTable::begin(const RecordPath& path, ObjectKind kind) {
  if (!rule_enabled(Rule::kRunningMark)) return;
  table(kind).begin(name_of(path, record_id(path.trail, kind)));
  begin_word(word_of(path, kind));
}

void MutationTable::end(const RecordPath& path, ObjectKind kind, uint64_t value) {
  const RecordName name = name_of(path, record_id(path.trail, kind));
  if (!rule_enabled(Rule::kRunningMark)) {
    table(kind).set(name, value);
    std::atomic<uint64_t>& word = word_of(path, kind);
    begin_word(word);
    end_word(word, value);
    return;
  }
  if (!rule_enabled(Rule::kRecordBeforeUnmark)) {
    table(kind).unmark(name.id);
    RAGFS_PAUSE_POINT("mutation.between_unmark_and_record");
    table(kind).set(name, value);
  } else {
    table(kind).end(name, value);
  }
  end_word(word_of(path, kind), value);
}

void MutationTable::abandon(const RecordPath& path, ObjectKind kind) {
  if (!rule_enabled(Rule::kRunningMark)) return;
  table(kind).unmark(record_id(path.trail, kind));
  end_word(word_of(path, kind), 0);
}

void MutationTable::record(const RecordPath& path, ObjectKind kind, uint64_t value) {
  table(kind).set(name_of(path, record_id(path.trail, kind)), value);
  std::atomic<uint64_t>& word = word_of(path, kind);
  begin_word(word);
  // Not `value`: others may have taken later values before this word was marked, and tags with it.
  end_word(word, advance_clock());
}

void MutationTable::mark(const RecordPath& path, ObjectKind kind, int64_t until_ns, uint64_t epoch) {
  table(kind).mark(name_of(path, record_id(path.trail, kind)), until_ns, epoch);
}

size_t MutationTable::expire_marks(int64_t now_ns) {
  return paths_.expire_marks(now_ns) + subtrees_.expire_marks(now_ns);
}

bool MutationTable::drop(const PathTrail& trail, ObjectKind kind, uint64_t value) {
  return table(kind).drop(record_id(trail, kind), value);
}

void MutationTable::drop_all_through(uint64_t through) {
  paths_.drop_through(through);
  subtrees_.drop_through(through);
}

void MutationTable::enforce_limits() {
  const auto into_subtree = [this](const RecordName& parent, uint64_t value) { subtrees_.set(parent, value); };
  // A sixteenth at a time, so that the next mutation does not fold again.
  if (paths_.size() > limits_.max_path_records) paths_.fold(limits_.max_path_records / 16 + 1, into_subtree);
  if (subtrees_.size() > limits_.max_subtree_records)
    subtrees_.fold(limits_.max_subtree_records / 16 + 1, into_subtree);
}

bool MutationTable::overflowed() const noexcept {
  // Twice the limit: folding had its chance. Marks never fold.
  return paths_.size() > 2 * limits_.max_path_records || subtrees_.size() > 2 * limits_.max_subtree_records ||
         paths_.marked() > limits_.max_marked_keys;
}

bool MutationTable::save(DomainState& state, size_t most) const {
  std::optional<std::vector<RecordSnapshot>> paths = paths_.snapshot(most);
  std::optional<std::vector<RecordSnapshot>> subtrees = subtrees_.snapshot(most);
  if (!paths || !subtrees) return false;
  state.paths = *std::move(paths);
  state.subtrees = *std::move(subtrees);
  state.clock = clock();
  return true;
}

void MutationTable::resume(const DomainState& state) {
  // One further: what this life fills is newer than every object of the lives before, and no tag is one of theirs.
  if (rule_enabled(Rule::kMarkerClock)) clock_.store(state.clock + 1);
  all_shards_.store(clock());
  if (rule_enabled(Rule::kMarkerRecords)) {
    for (const RecordSnapshot& record : state.paths) {
      RecordSnapshot kept = record;
      if (!rule_enabled(Rule::kMarkerMarks)) kept.marked_until_ns = 0;
      paths_.restore(kept, state.epoch);
    }
    for (const RecordSnapshot& record : state.subtrees) subtrees_.restore(record, state.epoch);
  }
}

void MutationTable::reset(uint64_t through, uint64_t epoch) {
  paths_.drop_marks_but(epoch);
  subtrees_.drop_marks_but(epoch);
  drop_all_through(through);
}

}  // namespace ragfs
