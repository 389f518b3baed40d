// A mutation (3.2): lock and running mark, backend call, clock and records, the provider's part, return.
#include <fmt/format.h>

#include "tests/model/steps.h"

namespace ragfs::model {

void Steps::write(int m) {
  const Process process = now_->process;
  const WritePc pc = now_->writers[m].pc;
  if (pc == WritePc::kIdle) return begin_mutation(m);
  // What has begun goes on while the process closes without waiting for it (a rule taken out).
  const bool alive = serves(*now_) || process == Process::kBypass || process == Process::kClosing ||
                     process == Process::kClosed || process == Process::kOff;
  if (!alive) return;
  switch (pc) {
    case WritePc::kBackend: return backend_call(m);
    case WritePc::kClock:
    case WritePc::kRecords:
    case WritePc::kLateRecords: return clock_step(m);
    case WritePc::kIssue: return issue_call(m);
    case WritePc::kCall: return provider_call(m);
    case WritePc::kIdle:
    case WritePc::kDone: return;
  }
}

// The mutation lock: held to the end, or (a rule taken out) until the provider's part begins.
bool Steps::excluded(int m) const {
  for (size_t other = 0; other < world_.mutations.size(); ++other) {
    const WritePc pc = now_->writers[other].pc;
    if (!exclusive_[m][other] || pc == WritePc::kIdle || pc == WritePc::kDone) continue;
    if (on(Rule::kMutationLockHeld) || pc < WritePc::kIssue) return true;
  }
  return false;
}

void Steps::begin_mutation(int m) {
  const Process process = now_->process;
  const bool outside = process == Process::kClosed || process == Process::kOff;  // no cache: the witness alone counts
  if (!serves(*now_) && process != Process::kBypass && !outside) return;
  if (excluded(m)) return;
  const bool renews = process == Process::kClosed ? on(Rule::kMarkerPromise) : on(Rule::kWitnessCacheOff);
  State& s = add();
  if (touches_nothing(m)) {
    if (!outside) ++s.clock;
    s.writers[m].pc = WritePc::kDone;
    out_->say([&] { return fmt::format("writer {}: a mutation elsewhere, clock {}", m + 1, s.clock); });
    return;
  }
  if (outside && renews && s.life == 0) {
    s.life = s.witness = fresh_life(s);
  }
  Writer& w = s.writers[m];
  w.pc = WritePc::kBackend;
  w.began = s.now;
  if (!outside) {
    // Under the lock, only a call that may still land can be running here.
    if (on(Rule::kNoPutBesideLateCall)) w.no_put = s.keys[0].running != 0 ? 1 : 0;
    for (int k = 0; k < world_.keys; ++k) s.keys[k].running = static_cast<Byte>(s.keys[k].running + plans_[m][k].marks);
    if (world_.mutations[m].subtree && on(Rule::kRunningMark)) ++s.subtrees[0].running;
    if (!on(Rule::kClockAfterBackend)) w.value = ++s.clock;
  }
  out_->say([&] {
    return fmt::format("writer {}: {} takes its lock{}", m + 1, world_.mutations[m].name,
                       outside ? fmt::format(", witness {}", s.witness) : " and marks all that it affects as running");
  });
}

void Steps::backend_call(int m) {
  auto land = [&](State& s) {
    for (int k = 0; k < world_.keys; ++k) {
      if (!plans_[m][k].changes) continue;
      Key& key = s.keys[k];
      s.writers[m].own[k] = ++key.version;
      if (!world_.base_claim_only[k]) key.floor = key.version;
    }
  };
  auto returned = [&](State& s, bool ok, Byte landed, std::string_view how) {
    Writer& w = s.writers[m];
    w.ok = ok ? 1 : 0;
    w.landed = landed;
    w.pc = WritePc::kClock;
    forget_outcome(w, m);
    if (s.process == Process::kClosed || s.process == Process::kOff) end_mutation(s, m);
    out_->say([&] { return fmt::format("writer {}: the backend call {}", m + 1, how); });
  };
  State& done = add();
  land(done);
  returned(done, true, 1, "succeeds");
  State& hidden = add();
  land(hidden);
  returned(hidden, false, 1, "reports an error, but took effect");
  State& failed = add();
  returned(failed, false, 0, "fails without effect");
  if (!world_.late_backend || !room(*now_)) return;
  State& late = add();
  put_late(late, {Late::kBackend, static_cast<Byte>(m), {}});
  returned(late, false, 2, "times out and is still under way");
}

bool Steps::touches_nothing(int m) const {
  for (int k = 0; k < world_.keys; ++k) {
    if (plans_[m][k].changes) return false;
  }
  return true;
}

// Keeps of the outcome what later steps look at.
void Steps::forget_outcome(Writer& w, int m) const {
  bool stores = false;
  bool base_claim = false;
  for (int k = 0; k < world_.keys; ++k) {
    stores = stores || plans_[m][k].stores;
    base_claim = base_claim || world_.base_claim_only[k];
    if (!plans_[m][k].stores && !world_.base_claim_only[k]) w.own[k] = 0;
  }
  if (!stores && on(Rule::kFailedMutationRecords)) w.ok = 0;
  if (w.landed == 1 && !base_claim) w.landed = 0;
}

void Steps::unmark(State& s, int m) const {
  for (int k = 0; k < world_.keys; ++k) s.keys[k].running = static_cast<Byte>(s.keys[k].running - plans_[m][k].marks);
  if (world_.mutations[m].subtree && on(Rule::kRunningMark)) --s.subtrees[0].running;
}

void Steps::set_records(State& s, int m, bool and_unmark) const {
  const Writer& w = s.writers[m];
  auto grown = [&](Byte old) { return on(Rule::kRecordMaximum) ? bigger(old, w.value) : w.value; };
  const bool subtree = world_.mutations[m].subtree;
  for (int k = 0; k < world_.keys; ++k) {
    Key& key = s.keys[k];
    const bool below = subtree && world_.mutations[m].roles[k] == Role::kBelow;
    if ((plans_[m][k].records || below) && on(Rule::kFlightRecords)) key.leader = 0;
    if (!plans_[m][k].records) continue;
    if (!on(Rule::kLocalEraseAfterFills)) key.near = Object{};  // too early
    key.record = grown(key.record);
    key.has_record = 1;
    key.record_at = world_.ticks > 0 ? s.now : 0;
  }
  if (subtree) {
    s.subtrees[0].record = grown(s.subtrees[0].record);
    s.subtrees[0].has_record = 1;
  }
  if (and_unmark) unmark(s, m);
}

void Steps::clock_step(int m) {
  State& s = add();
  Writer& w = s.writers[m];
  const bool may_land = w.landed == 2;
  const bool unmarks = !may_land || !on(Rule::kUnknownBackendKeepsRunning);
  if (w.pc == WritePc::kClock && w.ok == 0 && !on(Rule::kFailedMutationRecords)) {
    unmark(s, m);
    end_mutation(s, m);
    out_->say([&] { return fmt::format("writer {}: failed, so it sets no record and returns", m + 1); });
    return;
  }
  if (w.pc == WritePc::kClock && !on(Rule::kRecordBeforeUnmark)) {
    if (unmarks) unmark(s, m);
    w.pc = WritePc::kLateRecords;
    out_->say([&] { return fmt::format("writer {}: unmarks", m + 1); });
    return;
  }
  if (w.pc != WritePc::kRecords && on(Rule::kClockAfterBackend)) w.value = ++s.clock;
  if (w.pc == WritePc::kClock && world_.split_clock) {
    w.pc = WritePc::kRecords;
    out_->say([&] { return fmt::format("writer {}: advances the clock to {}", m + 1, w.value); });
    return;
  }
  const bool unmarked_before = w.pc == WritePc::kLateRecords;
  out_->say([&] {
    return fmt::format("writer {}: sets its records to {}{}", m + 1, w.value,
                       unmarks && !unmarked_before ? " and unmarks" : "");
  });
  set_records(s, m, unmarks && !unmarked_before);
  enter_calls(s, m);
}

// Step 5, key by key.
void Steps::enter_calls(State& s, int m) const {
  if (!serves(s)) return end_mutation(s, m);  // bypass: there is no provider
  s.writers[m].key = 0;
  if (!plans_[m][0].erases) return next_key(s, m, 0);
  s.writers[m].pc = WritePc::kIssue;
}

void Steps::next_key(State& s, int m, Byte after) const {
  Writer& w = s.writers[m];
  w.put_epoch = w.after_fills = 0;
  for (int k = after + 1; k < world_.keys; ++k) {
    if (!plans_[m][k].erases) continue;
    w.key = static_cast<Byte>(k);
    w.pc = WritePc::kIssue;
    return;
  }
  end_mutation(s, m);
}

bool Steps::stores_now(const State& s, int m) const {
  const Writer& w = s.writers[m];
  return plans_[m][w.key].stores && w.ok != 0 && w.no_put == 0;
}

// Issues the call for one key: from here on it may take effect. What the process keeps itself changes at once.
void Steps::issue_call(int m) {
  if (now_->noticed != 0) return;
  if (!serves(*now_)) {
    State& s = add();  // the process is closing: nothing is sent any more
    end_mutation(s, m);
    out_->say([&] { return fmt::format("writer {}: the mutation returns while the process closes", m + 1); });
    return;
  }
  State& s = add();
  Writer& w = s.writers[m];
  Key& key = s.keys[w.key];
  w.after_fills = !on(Rule::kSecondErase) || !old_fill(s, w.key, w.value) ? 1 : 0;
  if (world_.kinds[w.key] == KeyKind::kNegative) {
    out_->say([&] { return fmt::format("writer {}: the negative entry of key {} is erased", m + 1, w.key); });
    if (on(Rule::kLocalEraseAfterFills)) key.near = Object{};
    if (w.after_fills != 0 && key.record == w.value) drop_record(key);
    return next_key(s, m, w.key);
  }
  const bool stores = stores_now(s, m) && s.epoch != 0;
  if (stores) w.put_epoch = s.epoch;
  if (world_.near && on(Rule::kNearErase) && on(Rule::kLocalEraseAfterFills)) key.near = Object{};
  w.pc = WritePc::kCall;
  out_->say([&] { return fmt::format("writer {}: {} of key {} issued", m + 1, stores ? "put" : "erase", w.key); });
}

void Steps::provider_call(int m) {
  if (now_->noticed != 0) return;
  const Writer& w = now_->writers[m];
  const int k = w.key;
  const bool stores = w.put_epoch != 0;
  const Byte detail = world_.versioned() ? w.own[k] : Byte{0};
  const Byte filled_at = on(Rule::kFilledAtBeforeBackend) ? w.began : now_->now;
  const Object object{1, w.own[k], w.value, w.put_epoch, filled_at, detail};
  auto confirmed = [&](State& s) {
    Key& key = s.keys[k];
    const bool own = key.record == s.writers[m].value || !on(Rule::kEraseSettlesOwnValue);
    if (s.writers[m].after_fills == 0 || !own) return;
    if (key.mark != 0 && on(Rule::kDropOnlyUnmarked)) return;
    if (world_.resurrects && on(Rule::kResurrectKeepsRecords)) return;
    drop_record(key);
  };
  if (!stores) {
    State& gone = add();
    store(gone, k, Object{});
    confirmed(gone);
    next_key(gone, m, static_cast<Byte>(k));
    out_->say([&] { return fmt::format("writer {}: erase of key {} is confirmed", m + 1, k); });
    State& failed = add();
    if (!on(Rule::kRecordsSurviveFailedErase)) drop_record(failed.keys[k]);
    next_key(failed, m, static_cast<Byte>(k));
    out_->say([&] { return fmt::format("writer {}: erase of key {} fails", m + 1, k); });
    return;
  }
  auto late = [&](State& s) {
    if (!room(s)) return false;
    put_late(s, {Late::kPut, static_cast<Byte>(k), object});
    return true;
  };
  call(
      [&] {
        return fmt::format("writer {}: put of v{} (stamp {}, epoch {})", m + 1, object.version, object.stamp,
                           object.epoch);
      },
      [&](State& s) { store(s, k, object); }, late,
      [&](State& s, Outcome outcome) {
        if (outcome == Outcome::kConfirmed) {
          confirmed(s);
          return next_key(s, m, static_cast<Byte>(k));
        }
        if (outcome == Outcome::kUnknown) mark_unknown(s, k, object);
        Writer& writer = s.writers[m];
        writer.no_put = 1;
        writer.put_epoch = writer.after_fills = 0;
        writer.pc = WritePc::kIssue;
      });
}

void Steps::end_mutation(State& s, int m) const {
  for (int k = 0; k < world_.keys; ++k) {
    if (plans_[m][k].changes && world_.base_claim_only[k] && s.writers[m].landed == 1) {
      s.keys[k].floor = bigger(s.keys[k].floor, s.writers[m].own[k]);
    }
  }
  const bool keeps_running = s.writers[m].landed == 2 && on(Rule::kUnknownBackendKeepsRunning);
  s.writers[m] = Writer{};
  s.writers[m].pc = WritePc::kDone;
  if (keeps_running) s.writers[m].landed = 2;
}

}  // namespace ragfs::model
