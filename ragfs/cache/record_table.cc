#include "ragfs/cache/record_table.h"

#include <algorithm>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/rules.h"

namespace ragfs {

RecordTable::RecordTable(std::atomic<uint64_t>& population)
    : population_(population), buckets_(std::make_unique<Bucket[]>(kBuckets)) {}

RecordTable::~RecordTable() {
  for (size_t i = 0; i < kBuckets; ++i) {
    // One by one: the default destruction of a long chain recurses.
    std::unique_ptr<Record> head = std::move(buckets_[i].head);
    while (head) head = std::move(head->next);
  }
}

RecordTable::Record* RecordTable::find(const Bucket& bucket, uint64_t id) {
  for (Record* at = bucket.head.get(); at != nullptr; at = at->next.get()) {
    if (at->id == id) return at;
  }
  return nullptr;
}

RecordTable::Record& RecordTable::find_or_add(Bucket& bucket, const RecordName& name) {
  if (Record* found = find(bucket, name.id)) return *found;
  auto record = std::make_unique<Record>();
  record->id = name.id;
  record->ancestors.assign(name.ancestors.begin(), name.ancestors.end());
  record->next = std::move(bucket.head);
  bucket.head = std::move(record);
  size_.fetch_add(1, std::memory_order_relaxed);
  population_.fetch_add(1, std::memory_order_seq_cst);
  return *bucket.head;
}

void RecordTable::publish(Bucket& bucket) {
  uint64_t running = 0;
  uint64_t value = 0;
  for (const Record* at = bucket.head.get(); at != nullptr; at = at->next.get()) {
    running += at->running;
    value = std::max(value, at->value);
  }
  constexpr uint64_t kMostRunning = 0xffff;  // a count beyond it still reads as "running"
  bucket.word.store(std::min(running, kMostRunning) << kValueBits | value, std::memory_order_seq_cst);
}

RecordBound RecordTable::exact(uint64_t id) const {
  MutexLock lock(stripe_of(id));
  const Record* record = find(buckets_[index_of(id)], id);
  if (record == nullptr) return {};
  return {record->value, record->running > 0};
}

void RecordTable::begin(const RecordName& name) {
  MutexLock lock(stripe_of(name.id));
  Bucket& bucket = buckets_[index_of(name.id)];
  ++find_or_add(bucket, name).running;
  publish(bucket);
}

void RecordTable::end(const RecordName& name, uint64_t value) {
  MutexLock lock(stripe_of(name.id));
  Bucket& bucket = buckets_[index_of(name.id)];
  Record& record = find_or_add(bucket, name);
  const bool keep_maximum = rule_enabled(Rule::kRecordMaximum);
  record.value = keep_maximum ? std::max(record.value, value) : value;
  if (record.running > 0) --record.running;
  publish(bucket);
}

void RecordTable::unmark(uint64_t id) {
  MutexLock lock(stripe_of(id));
  Bucket& bucket = buckets_[index_of(id)];
  Record* record = find(bucket, id);
  if (record == nullptr) return;
  if (record->running > 0) --record->running;
  if (record->running == 0 && record->value == 0 && record->marked_until_ns == 0) {
    remove_if(bucket, [id](const Record& at) { return at.id == id; });
  }
  publish(bucket);
}

void RecordTable::set(const RecordName& name, uint64_t value) {
  MutexLock lock(stripe_of(name.id));
  Bucket& bucket = buckets_[index_of(name.id)];
  Record& record = find_or_add(bucket, name);
  record.value = std::max(record.value, value);
  publish(bucket);
}

void RecordTable::mark(const RecordName& name, int64_t until_ns, uint64_t epoch) {
  MutexLock lock(stripe_of(name.id));
  Bucket& bucket = buckets_[index_of(name.id)];
  Record& record = find_or_add(bucket, name);
  if (record.marked_until_ns == 0) marked_.fetch_add(1, std::memory_order_relaxed);
  record.marked_until_ns = std::max(record.marked_until_ns, until_ns);
  record.marked_epoch = epoch;
  publish(bucket);
}

size_t RecordTable::expire_marks(int64_t now_ns) {
  return unmark_if([now_ns](const Record& at) { return at.marked_until_ns <= now_ns; });
}

void RecordTable::drop_marks_but(uint64_t epoch) {
  unmark_if([epoch](const Record& at) { return at.marked_epoch != epoch; });
}

size_t RecordTable::unmark_if(const std::function<bool(const Record&)>& over) {
  for (size_t i = 0; i < kBuckets && marked() > 0; ++i) {
    MutexLock lock(stripes_[i % kStripes]);
    Bucket& bucket = buckets_[i];
    for (Record* at = bucket.head.get(); at != nullptr; at = at->next.get()) {
      if (at->marked_until_ns == 0 || !over(*at)) continue;
      at->marked_until_ns = 0;
      marked_.fetch_sub(1, std::memory_order_relaxed);
    }
    // A mark without a mutation left a record of value 0; it refuses nothing and can go.
    remove_if(bucket, [](const Record& at) { return at.value == 0 && at.running == 0 && at.marked_until_ns == 0; });
    publish(bucket);
  }
  return marked();
}

bool RecordTable::droppable(const Record& record) const {
  if (record.running > 0) return false;
  return record.marked_until_ns == 0 || !rule_enabled(Rule::kDropOnlyUnmarked);
}

size_t RecordTable::remove_if(Bucket& bucket, const std::function<bool(const Record&)>& gone) {
  size_t removed = 0;
  std::unique_ptr<Record>* link = &bucket.head;
  while (*link) {
    if (!gone(**link)) {
      link = &(*link)->next;
      continue;
    }
    if ((*link)->marked_until_ns != 0) marked_.fetch_sub(1, std::memory_order_relaxed);
    *link = std::move((*link)->next);
    ++removed;
  }
  if (removed > 0) {
    publish(bucket);
    size_.fetch_sub(removed, std::memory_order_relaxed);
    population_.fetch_sub(removed, std::memory_order_seq_cst);
  }
  return removed;
}

bool RecordTable::drop(uint64_t id, uint64_t value) {
  MutexLock lock(stripe_of(id));
  return remove_if(buckets_[index_of(id)], [&](const Record& at) {
           const bool own_value = at.value == value || !rule_enabled(Rule::kEraseSettlesOwnValue);
           return at.id == id && own_value && droppable(at);
         }) > 0;
}

size_t RecordTable::drop_through(uint64_t through) {
  size_t dropped = 0;
  for (size_t i = 0; i < kBuckets && size() > 0; ++i) {
    MutexLock lock(stripes_[i % kStripes]);
    dropped += remove_if(buckets_[i], [&](const Record& at) { return at.value <= through && droppable(at); });
  }
  return dropped;
}

std::optional<std::vector<RecordSnapshot>> RecordTable::snapshot(size_t most) const {
  std::vector<RecordSnapshot> records;
  for (size_t i = 0; i < kBuckets && size() > 0; ++i) {
    MutexLock lock(stripes_[i % kStripes]);
    for (const Record* at = buckets_[i].head.get(); at != nullptr; at = at->next.get()) {
      if (at->running > 0 || records.size() >= most) return std::nullopt;
      records.push_back({at->id, at->value, at->marked_until_ns, at->ancestors});
    }
  }
  return records;
}

void RecordTable::restore(const RecordSnapshot& record, uint64_t epoch) {
  const RecordName name{record.id, record.ancestors};
  set(name, record.value);
  if (record.marked_until_ns != 0) mark(name, record.marked_until_ns, epoch);
}

size_t RecordTable::fold(size_t limit, const std::function<void(const RecordName&, uint64_t)>& fold) {
  struct Candidate {
    uint64_t id;
    uint64_t value;
    std::vector<uint64_t> ancestors;
  };
  std::vector<Candidate> candidates;
  for (size_t step = 0; step < kBuckets && candidates.size() < limit; ++step) {
    const size_t i = fold_cursor_.fetch_add(1, std::memory_order_relaxed) % kBuckets;
    MutexLock lock(stripes_[i % kStripes]);
    for (const Record* at = buckets_[i].head.get(); at != nullptr; at = at->next.get()) {
      if (!at->ancestors.empty() && at->running == 0 && at->marked_until_ns == 0) {
        candidates.push_back({at->id, at->value, at->ancestors});
      }
    }
  }
  size_t dropped = 0;
  const bool parent_first = rule_enabled(Rule::kFoldParentFirst);
  for (const Candidate& child : candidates) {
    if (!parent_first && drop(child.id, child.value)) ++dropped;
    if (!parent_first) RAGFS_PAUSE_POINT("fold.between_parent_and_child");
    const std::span<const uint64_t> ancestors(child.ancestors);
    fold({ancestors.back(), ancestors.first(ancestors.size() - 1)}, child.value);
    if (parent_first) RAGFS_PAUSE_POINT("fold.between_parent_and_child");
    if (parent_first && drop(child.id, child.value)) ++dropped;
  }
  return dropped;
}

}  // namespace ragfs
