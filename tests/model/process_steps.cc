// Restarts and new epochs (3.6): witness, pointer, clean marker, bypass, orderly close, crash.
#include <fmt/format.h>

#include "tests/model/steps.h"

namespace ragfs::model {

void Steps::process() {
  const Process process = now_->process;
  if (now_->crashes > 0 && process != Process::kDown && process != Process::kClosed && process != Process::kOff) {
    State& s = add();
    --s.crashes;
    stop(s);
    s.process = Process::kDown;
    out_->say([] { return std::string("the process crashes"); });
  }
  switch (process) {
    case Process::kDown: return start();
    case Process::kReadMarker: return read_marker();
    case Process::kWritePointer:
    case Process::kRejoin: return write_pointer();
    case Process::kUp: return close();
    case Process::kClosing: return closing();
    case Process::kBypass: {
      State& s = add();
      if (on(Rule::kColdJoin)) {
        fresh_attempt(s);
        s.process = Process::kRejoin;
        out_->say([&] { return fmt::format("bypass ends: a new epoch is attempted as life {}", s.attempt); });
        return;
      }
      s.attempt = s.life;
      s.process = Process::kReadMarker;
      out_->say([] { return std::string("bypass ends as if the life began now"); });
      return;
    }
    case Process::kClosed:
    case Process::kOff: {
      State& s = add();
      stop(s);
      s.process = Process::kDown;
      out_->say([] { return std::string("the process ends"); });
      return;
    }
  }
}

// The next fresh life for an attempt at the pointer.
void Steps::fresh_attempt(State& s) const {
  if (!on(Rule::kFreshPointerLife) && s.attempt != 0) return;
  s.attempt = fresh_life(s);
  if (on(Rule::kWitnessOrder)) s.witness = s.attempt;
}

void Steps::start() {
  State& s = add();
  s.old_witness = s.witness;
  fresh_attempt(s);
  s.process = Process::kReadMarker;
  out_->say([&] {
    return fmt::format("start: the old witness is {}, this life {}; pointer: life {}", s.old_witness, s.attempt,
                       s.pointer.life);
  });
  if (world_.bypass) {
    State& bypass = add();
    bypass.old_witness = bypass.witness;
    fresh_attempt(bypass);
    bypass.life = bypass.attempt;
    bypass.attempt = 0;
    if (on(Rule::kColdJoin)) bypass.old_witness = 0;
    bypass.process = Process::kBypass;
    out_->say([&] { return fmt::format("start as life {}: the provider is not reachable, bypass", bypass.life); });
  }
  if (world_.cache_off) {
    add().process = Process::kOff;
    out_->say([] { return std::string("start with the cache off"); });
  }
}

// Warm only if pointer, witness, marker and incarnation agree; else a new epoch.
void Steps::read_marker() {
  State& s = add();
  const Marker* found = nullptr;
  for (const Marker& marker : s.markers) {
    const bool named = !on(Rule::kMarkerNamedByLife) || marker.life == s.pointer.life;
    if (marker.state == 2 && named) found = &marker;
  }
  const bool warm = found != nullptr && s.pointer.life != 0 &&
                    (!on(Rule::kWitness) || s.pointer.life == s.old_witness) &&
                    (!on(Rule::kMarkerIncarnation) || found->old_incarnation == 0);
  s.process = Process::kWritePointer;
  s.old_witness = 0;
  if (!warm) {
    s.life = 0;
    out_->say([&] { return fmt::format("start: no valid marker, a new epoch is attempted as life {}", s.attempt); });
    return;
  }
  s.warm = 1;
  s.life = 0;
  s.epoch = found->epoch;
  if (on(Rule::kMarkerClock)) s.clock = found->clock;
  Key& key = s.keys[0];
  if (on(Rule::kMarkerRecords)) {
    key.record = found->record;
    key.has_record = found->has_record;
    s.subtrees = found->subtrees;
  }
  if (on(Rule::kMarkerMarks)) key.mark = found->mark;
  if (key.mark != 0) key.mark_epoch = s.epoch;
  out_->say([&] { return fmt::format("start: warm, epoch {} goes on (clock {})", s.epoch, s.clock); });
}

void Steps::write_pointer() {
  if (now_->noticed != 0) return;
  const Byte life = now_->attempt;
  const Byte epoch = now_->warm != 0 ? now_->epoch : life;
  auto late = [&](State& s) {
    if (!room(s)) return false;
    LateCall call{Late::kPointer, life, {}};
    call.object.epoch = epoch;
    put_late(s, call);
    return true;
  };
  call([&] { return fmt::format("epoch: the pointer write (life {}, epoch {})", life, epoch); },
       [&](State& s) { s.pointer = {life, epoch}; }, late,
       [&](State& s, Outcome outcome) {
         if (outcome == Outcome::kConfirmed) return adopt(s);
         fresh_attempt(s);
       });
}

// The pointer write was confirmed: the epoch begins, or goes on.
void Steps::adopt(State& s) const {
  s.life = s.attempt;
  s.attempt = 0;
  s.process = Process::kUp;
  if (!on(Rule::kWitnessOrder)) s.witness = s.life;
  if (s.warm != 0) {
    s.warm = 0;
    return;
  }
  s.epoch = s.life;
  const Byte clock = s.clock;
  bool guards = false;
  for (int k = 0; k < world_.keys; ++k) {
    guards = guards || s.keys[k].has_record != 0 || s.keys[k].mark != 0;
    s.keys[k].near = Object{};
  }
  for (const Subtree& subtree : s.subtrees) guards = guards || subtree.has_record != 0;
  if (guards) s.dropping = static_cast<Byte>(clock + 1);
  if (!on(Rule::kClockKeptInLife)) s.clock = 0;
}

// The second half of a new epoch: what guarded against objects of earlier epochs goes, in a step of its own.
void Steps::drop_older() {
  State& s = add();
  const bool all = !on(Rule::kEpochDropsOlderOnly);
  const int through = s.dropping - 1;
  for (int k = 0; k < world_.keys; ++k) {
    Key& key = s.keys[k];
    if (all || key.record <= through) drop_record(key);
    if (all || key.mark_epoch != s.epoch) key.mark = key.mark_epoch = 0;
  }
  for (Subtree& subtree : s.subtrees) {
    if (all || subtree.record <= through) subtree.has_record = subtree.record = 0;
  }
  s.dropping = 0;
  out_->say(
      [&] { return fmt::format("the new epoch drops {}", all ? "all records and marks" : "older records and marks"); });
}

void Steps::close() {
  if (now_->closes == 0 || now_->noticed != 0 || now_->settling != 0 || now_->folding != 0 || now_->dropping != 0) {
    return;
  }
  if (on(Rule::kCloseDrains)) {
    for (const Reader& reader : now_->readers) {
      if (reader.pc != ReadPc::kIdle) return;
    }
    for (const Writer& writer : now_->writers) {
      if (writer.pc != WritePc::kIdle && writer.pc != WritePc::kDone) return;
      if (writer.landed == 2) return;
    }
  }
  size_t free = 0;
  while (free < kMaxMarkers && now_->markers[free].state != 0) ++free;
  if (free == kMaxMarkers) return;
  State& s = add();
  --s.closes;
  s.process = Process::kClosing;
  const Key& key = s.keys[0];
  s.markers[free] = {1, s.life, s.epoch, 0, s.clock, key.record, key.has_record, key.mark, s.subtrees};
  for (Subtree& subtree : s.markers[free].subtrees) subtree.running = 0;
  s.attempt = static_cast<Byte>(free);  // which marker this close writes
  out_->say([&] { return fmt::format("orderly close of life {}: the marker is issued (clock {})", s.life, s.clock); });
}

void Steps::closing() {
  const int marker = now_->attempt;
  auto end = [&](State& s) {
    stop(s);
    s.process = world_.mutate_after_close ? Process::kClosed : Process::kDown;
  };
  State& confirmed = add();
  land_marker(confirmed, marker);
  end(confirmed);
  out_->say([] { return std::string("close: the marker is written, the cache ends"); });
  State& failed = add();
  failed.markers[marker] = Marker{};
  end(failed);
  out_->say([] { return std::string("close: the marker write fails, the cache ends"); });
  State& unknown = add();
  end(unknown);
  out_->say([] { return std::string("close: the marker write times out and is still under way, the cache ends"); });
}

// The process is gone, or its cache; puts and pointer writes that it had issued may still land.
void Steps::stop(State& s) const {
  for (Reader& reader : s.readers) {
    if (reader.pc == ReadPc::kPut && room(s)) put_late(s, {Late::kPut, reader.key, reader.object});
    reader = Reader{};
  }
  for (size_t m = 0; m < world_.mutations.size(); ++m) {
    Writer& w = s.writers[m];
    if (w.pc == WritePc::kIdle) continue;
    const bool issued = w.pc == WritePc::kCall ? w.put_epoch != 0 : w.pc == WritePc::kIssue && s.epoch != 0;
    if (issued && stores_now(s, static_cast<int>(m)) && room(s)) {
      const Byte detail = world_.versioned() ? w.own[w.key] : Byte{0};
      put_late(s, {Late::kPut, w.key, {1, w.own[w.key], w.value, s.epoch, w.began, detail}});
    }
    w = Writer{};
    w.pc = WritePc::kDone;
  }
  const bool pointer = s.process == Process::kWritePointer || s.process == Process::kRejoin;
  if (pointer && s.attempt != 0 && room(s)) {
    LateCall call{Late::kPointer, s.attempt, {}};
    call.object.epoch = s.warm != 0 ? s.epoch : s.attempt;
    put_late(s, call);
  }
  for (Key& key : s.keys) {
    key.near = Object{};
    drop_record(key);
    key.running = key.mark = key.mark_epoch = key.leader = 0;
  }
  s.subtrees = {};
  s.settling = s.settle_value = s.folding = s.fold_value = s.dropping = 0;
  s.epoch = s.clock = s.life = s.attempt = s.old_witness = s.warm = s.noticed = 0;
}

}  // namespace ragfs::model
