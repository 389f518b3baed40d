// Letting records go (3.5): the retry queue's erases, expired marks, folding, sweeping.
#include <fmt/format.h>

#include "tests/model/steps.h"

namespace ragfs::model {

// A registered fill that began before the mutation `value` may still put what it read.
bool Steps::old_fill(const State& s, int key, Byte value) {
  for (const Reader& reader : s.readers) {
    if (reader.registered != 0 && reader.key == key && reader.start < value) return true;
  }
  return false;
}

void Steps::drop_record(Key& key) { key.has_record = key.record = key.record_at = 0; }

void Steps::mark_unknown(State& s, int key, const Object& object) const {
  if (!on(Rule::kUnknownPutMarks)) return;
  const Byte ends = world_.ttl > 0 ? static_cast<Byte>(1 + object.filled_at + world_.ttl) : kMarkForEver;
  s.keys[key].mark = bigger(s.keys[key].mark, ends);
  if (world_.restarts) s.keys[key].mark_epoch = bigger(s.keys[key].mark_epoch, object.epoch);
}

bool Steps::may_settle(const State& s, int k, Byte value) const {
  const Key& key = s.keys[k];
  if (world_.resurrects && on(Rule::kResurrectKeepsRecords)) return false;
  if (key.mark != 0 && on(Rule::kDropOnlyUnmarked) && on(Rule::kMarkUntilExpiry)) return false;
  return !on(Rule::kSecondErase) || !old_fill(s, k, value);
}

void Steps::settle() {
  if (!serves(*now_)) return;
  if (now_->dropping != 0) drop_older();
  drop_expired();
  fold();
  if (now_->noticed != 0) return;
  sweep();
  if (now_->settling != 0) return finish_settle();
  for (int k = 0; k < world_.keys; ++k) settle_key(k);
}

void Steps::settle_key(int k) {
  const Key& key = now_->keys[k];
  if (key.has_record == 0 || !may_settle(*now_, k, key.record)) return;
  const bool split = world_.near || !on(Rule::kEraseSettlesOwnValue);
  State& s = add();
  if (on(Rule::kNearErase)) s.keys[k].near = Object{};
  if (split) {
    s.settling = static_cast<Byte>(k + 1);
    s.settle_value = key.record;
    out_->say([&] { return fmt::format("retry queue: erase of key {} issued for record {}", k, s.settle_value); });
    return;
  }
  store(s, k, Object{});
  drop_record(s.keys[k]);
  if (!on(Rule::kMarkUntilExpiry)) s.keys[k].mark = s.keys[k].mark_epoch = 0;
  out_->say([&] { return fmt::format("retry queue: erase of key {} confirmed, record {} dropped", k, key.record); });
  if (on(Rule::kRecordsSurviveFailedErase)) return;
  State& failed = add();
  drop_record(failed.keys[k]);
  out_->say([&] { return fmt::format("retry queue: erase of key {} fails, record {} dropped", k, key.record); });
}

void Steps::finish_settle() {
  const int k = now_->settling - 1;
  State& s = add();
  Key& key = s.keys[k];
  store(s, k, Object{});
  const bool own = key.record == s.settle_value || !on(Rule::kEraseSettlesOwnValue);
  const bool marked = key.mark != 0 && on(Rule::kDropOnlyUnmarked) && on(Rule::kMarkUntilExpiry);
  const bool drops = key.has_record != 0 && own && !marked;
  if (drops) drop_record(key);
  s.settling = s.settle_value = 0;
  out_->say(
      [&] { return fmt::format("retry queue: erase of key {} confirmed{}", k, drops ? ", record dropped" : ""); });
  State& failed = add();
  failed.settling = failed.settle_value = 0;
  out_->say([&] { return fmt::format("retry queue: erase of key {} fails", k); });
}

// Marks and (with a provider that may resurrect) records end when every object that they guard against has expired.
void Steps::drop_expired() {
  if (world_.ttl == 0) return;
  for (int k = 0; k < world_.keys; ++k) {
    const Key& key = now_->keys[k];
    if (key.mark != 0 && key.mark != kMarkForEver && now_->now + 1 >= key.mark) {
      State& s = add();
      s.keys[k].mark = s.keys[k].mark_epoch = 0;
      out_->say([&] { return fmt::format("the mark of key {} ends: the object of the unknown put has expired", k); });
    }
    if (world_.resurrects && key.has_record != 0 && now_->now >= key.record_at + world_.ttl) {
      drop_record(add().keys[k]);
      out_->say([&] { return fmt::format("the record of key {} is dropped: all older objects have expired", k); });
    }
  }
}

// Folding, as two steps: the parent's record is set, the child's is dropped.
void Steps::fold() {
  if (now_->folding != 0) return fold_ends();
  if (now_->folds == 0) return;
  const Key& key = now_->keys[0];
  if (key.has_record != 0 && key.mark == 0 && key.running == 0 && now_->settling == 0) fold_begins(1);
  if (now_->subtrees[0].has_record != 0 && now_->subtrees[0].running == 0) fold_begins(2);
}

void Steps::fold_begins(int kind) {
  State& s = add();
  --s.folds;
  s.folding = static_cast<Byte>(kind);
  s.fold_value = kind == 1 ? s.keys[0].record : s.subtrees[0].record;
  if (on(Rule::kFoldParentFirst)) {
    Subtree& parent = s.subtrees[kind - 1];
    parent.record = bigger(parent.record, s.fold_value);
    parent.has_record = 1;
    out_->say([&] { return fmt::format("fold: the parent's record is set to {}", parent.record); });
    return;
  }
  if (kind == 1) drop_record(s.keys[0]);
  if (kind == 2) s.subtrees[0].has_record = s.subtrees[0].record = 0;
  out_->say([&] { return fmt::format("fold: the child's record {} is dropped", s.fold_value); });
}

void Steps::fold_ends() {
  State& s = add();
  const int kind = s.folding;
  const Byte value = s.fold_value;
  s.folding = s.fold_value = 0;
  if (on(Rule::kFoldParentFirst)) {
    if (kind == 1 && s.keys[0].record <= value && s.keys[0].mark == 0) drop_record(s.keys[0]);
    if (kind == 2 && s.subtrees[0].record <= value) s.subtrees[0].has_record = s.subtrees[0].record = 0;
    out_->say([&] { return fmt::format("fold: the child's record is dropped"); });
    return;
  }
  Subtree& parent = s.subtrees[kind - 1];
  parent.record = bigger(parent.record, value);
  parent.has_record = 1;
  out_->say([&] { return fmt::format("fold: the parent's record is set to {}", parent.record); });
}

// A provider that enumerates erases what a subtree record covers; then the record is not needed any more.
void Steps::sweep() {
  if (!world_.sweeps || now_->folding != 0) return;
  for (size_t level = 0; level < 2; ++level) {
    const Subtree& subtree = now_->subtrees[level];
    if (subtree.has_record == 0 || subtree.running != 0) continue;
    bool ready = true;
    for (int k = 0; k < world_.keys && on(Rule::kSweepAfterFills); ++k) {
      ready = ready && now_->keys[k].mark == 0 && !old_fill(*now_, k, subtree.record);
    }
    if (!ready) continue;
    State& s = add();
    for (int k = 0; k < world_.keys; ++k) {
      if (s.keys[k].stored.stamp < subtree.record) store(s, k, Object{});
      if (s.keys[k].near.stamp < subtree.record) s.keys[k].near = Object{};
    }
    s.subtrees[level].has_record = s.subtrees[level].record = 0;
    out_->say([&] { return fmt::format("sweep below level {}: subtree record {} dropped", level, subtree.record); });
  }
}

}  // namespace ragfs::model
