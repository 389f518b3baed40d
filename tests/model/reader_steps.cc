// A read (3.3), the fill that a miss leads to (3.4), merged reads (5) and the near tier (3.7).
#include <fmt/format.h>

#include "tests/model/steps.h"

namespace ragfs::model {
namespace {

std::string object_words(const Object& object) {
  if (object.present == 0) return "nothing";
  return fmt::format("v{} (stamp {}, epoch {}, filled at tick {})", object.version, object.stamp, object.epoch,
                     object.filled_at);
}

// Forgets all but what was asked.
void go_on_at(Reader& reader, ReadPc pc) {
  const Reader old = reader;
  reader = Reader{};
  reader.pc = pc;
  reader.key = old.key;
  reader.stat = old.stat;
  reader.floor = old.floor;
}

}  // namespace

void Steps::read(int i) {
  const Reader& reader = now_->readers[i];
  switch (reader.pc) {
    case ReadPc::kIdle:
      if (!serves(*now_)) return;
      if (world_.asks[i] == Ask::kStat) return start_read(i, 1, true);
      if (world_.asks[i] == Ask::kList || world_.asks[i] == Ask::kSecond) return start_read(i, 1, false);
      if (world_.asks[i] == Ask::kFirst) return start_read(i, 0, false);
      for (int k = 0; k < world_.keys; ++k) start_read(i, k, false);
      return;
    case ReadPc::kLookRoot: {
      State& s = add();
      look(s, s.readers[i], !on(Rule::kLeafBeforeRoot), on(Rule::kLeafBeforeRoot));
      after_lookup(s.readers[i]);
      out_->say([&] { return fmt::format("reader {}: looks up the other level", i + 1); });
      return;
    }
    case ReadPc::kNear: return near_lookup(i);
    case ReadPc::kGet: return provider_get(i);
    case ReadPc::kCheck:
    case ReadPc::kLookLate: {
      State& s = add();
      Reader& x = s.readers[i];
      if (!on(Rule::kRecordsBeforeGet)) look(s, x, true, true);
      decide(s, i);
      return;
    }
    case ReadPc::kVerify: return verify(i);
    case ReadPc::kMiss: return miss(i);
    case ReadPc::kVersion:
    case ReadPc::kVersionLate: {
      State& s = add();
      Reader& x = s.readers[i];
      x.object.detail = s.keys[x.key].version;
      x.pc = x.pc == ReadPc::kVersion ? ReadPc::kBackend : ReadPc::kFillCheck;
      out_->say([&] { return fmt::format("reader {}: reads the backend's version: {}", i + 1, x.object.detail); });
      return;
    }
    case ReadPc::kBackend: return backend_read(i);
    case ReadPc::kFillCheck: return fill_check(i);
    case ReadPc::kNearPut: return near_put(i);
    case ReadPc::kPut: return fill_put(i);
    case ReadPc::kFollow: return;
    case ReadPc::kFollowReady: return follower(i);
  }
}

void Steps::start_read(int i, int key, bool stat) {
  State& s = add();
  Reader& x = s.readers[i];
  x.key = static_cast<Byte>(key);
  x.stat = stat ? 1 : 0;
  x.floor = s.keys[stat ? 0 : key].floor;
  if (!on(Rule::kEpochAfterGet)) x.captured_epoch = s.epoch;
  const bool local = world_.kinds[key] == KeyKind::kNegative;
  if (world_.near && !local && on(Rule::kNearRegisteredBeforeGet)) {
    x.registered = 1;
    x.start = s.clock;
  }
  if (!on(Rule::kRecordsBeforeGet)) {
    after_lookup(x);
  } else if (world_.split_lookup) {
    look(s, x, on(Rule::kLeafBeforeRoot), !on(Rule::kLeafBeforeRoot));
    x.pc = ReadPc::kLookRoot;
  } else {
    look(s, x, true, true);
    after_lookup(x);
  }
  out_->say([&] {
    return fmt::format("reader {}: a {} of key {} starts, must not give less than v{}; records looked up: {}{}", i + 1,
                       stat ? "stat" : "read", key, x.floor, x.need, x.blocked != 0 ? ", a mutation runs" : "");
  });
}

// Captures the largest record and whether a mutation runs, of the leaf's directory and path or of the root above.
void Steps::look(const State& s, Reader& reader, bool leaf, bool root) const {
  if (world_.kinds[reader.key] == KeyKind::kNegative && !on(Rule::kNegativeRecord)) return;
  const Key& key = s.keys[reader.stat != 0 && !on(Rule::kStatListingRecord) ? 0 : reader.key];
  if (leaf) {
    if (key.running != 0) reader.blocked = 1;
    if (on(Rule::kStampCheck) && key.has_record != 0) reader.need = bigger(reader.need, key.record);
  }
  if (!on(Rule::kSubtreeCheck)) return;
  for (size_t level = 0; level < 2; ++level) {
    const Subtree& subtree = s.subtrees[level];
    if (level == 0 ? !leaf : !root) continue;
    if (subtree.running != 0) reader.blocked = 1;
    if (subtree.has_record != 0) reader.need = bigger(reader.need, subtree.record);
  }
}

void Steps::after_lookup(Reader& x) const {
  const bool local = world_.kinds[x.key] == KeyKind::kNegative;
  const bool asks_backend = x.stat != 0 && world_.stat_of_a_link && on(Rule::kStatPlainEntries);
  if (x.blocked != 0 || asks_backend) {
    go_on_at(x, ReadPc::kMiss);
    return;
  }
  x.pc = world_.near || local ? ReadPc::kNear : ReadPc::kGet;
}

void Steps::near_lookup(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  const Object& near = s.keys[x.key].near;
  out_->say([&] { return fmt::format("reader {}: near lookup finds {}", i + 1, object_words(near)); });
  if (near.present == 0) {
    x.pc = world_.kinds[x.key] == KeyKind::kNegative ? ReadPc::kMiss : ReadPc::kGet;
    return;
  }
  x.object = near;
  x.from_near = 1;
  check_object(s, i);
}

void Steps::provider_get(int i) {
  if (now_->noticed != 0) return;
  const Object& stored = now_->keys[now_->readers[i].key].stored;
  auto missed = [&](std::string_view how) {
    State& s = add();
    go_on_at(s.readers[i], ReadPc::kMiss);
    out_->say([&] { return fmt::format("reader {}: provider get {}", i + 1, how); });
  };
  if (stored.present == 0) return missed("finds nothing");
  State& s = add();
  s.readers[i].object = stored;
  out_->say([&] { return fmt::format("reader {}: provider get finds {}", i + 1, object_words(stored)); });
  check_object(s, i);
  missed("fails");
}

// Holds an object. Where nothing that the decision needs can change any more, it is taken in the same step.
void Steps::check_object(State& s, int i) {
  if (on(Rule::kRecordsBeforeGet) && !world_.epoch_moves()) return decide(s, i);
  s.readers[i].pc = ReadPc::kCheck;
}

bool Steps::suspect(const State& s, const Object& object) const {
  if (!on(Rule::kRevalidate)) return false;
  if (world_.verify_inherited && object.epoch != s.epoch && s.epoch != 0) return true;
  return world_.revalidate > 0 && s.now >= object.filled_at + world_.revalidate;
}

// A refused near copy leads to the provider, with the records captured before; a refused object is a miss.
void Steps::refuse(Reader& x) const {
  const Reader old = x;
  if (x.from_near == 0 || world_.kinds[x.key] == KeyKind::kNegative) return go_on_at(x, ReadPc::kMiss);
  go_on_at(x, ReadPc::kGet);
  x.need = old.need;
  x.captured_epoch = old.captured_epoch;
  x.registered = old.registered;
  x.start = old.start;
}

void Steps::decide(State& s, int i) {
  Reader& x = s.readers[i];
  const Byte epoch = on(Rule::kEpochAfterGet) ? s.epoch : x.captured_epoch;
  const bool local = world_.kinds[x.key] == KeyKind::kNegative;
  const bool looks = local ? on(Rule::kNegativeEpoch) : on(Rule::kEpochOnHit);
  const bool inherited = looks && (x.object.epoch != epoch || epoch == 0);
  const bool taken_on = inherited && world_.verify_inherited && s.epoch != 0;
  const bool refused =
      x.blocked != 0 || expired(s, x.object) || (inherited && !taken_on) || (!inherited && x.object.stamp < x.need);
  if (refused) {
    out_->say([&] { return fmt::format("reader {}: refuses v{}", i + 1, x.object.version); });
    return refuse(x);
  }
  x.need = x.blocked = x.captured_epoch = 0;
  if (suspect(s, x.object)) {
    x.registered = on(Rule::kRestampIsFill) ? 1 : 0;
    x.start = x.registered != 0 ? s.clock : 0;
    x.epoch = s.epoch;
    x.began = s.now;
    x.from_near = 0;
    x.pc = ReadPc::kVerify;
    out_->say(
        [&] { return fmt::format("reader {}: v{} is to be verified, start {}", i + 1, x.object.version, x.start); });
    return;
  }
  out_->say([&] { return fmt::format("reader {}: hit, delivers {}", i + 1, object_words(x.object)); });
  deliver(x, x.stat != 0 ? x.object.detail : x.object.version);
  if (!on(Rule::kExpiryNotRearmed) && s.keys[x.key].stored.present != 0) s.keys[x.key].stored.filled_at = s.now;
  if (!world_.near || x.from_near != 0 || world_.kinds[x.key] == KeyKind::kNegative) return finish_read(s, i);
  x.hit = 1;
  x.pc = ReadPc::kNearPut;
  if (on(Rule::kNearRegisteredBeforeGet)) return;
  x.registered = 1;
  x.start = s.clock;
}

void Steps::verify(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  const Byte version = s.keys[x.key].version;
  if (version == x.object.detail) {
    out_->say([&] {
      return fmt::format("reader {}: backend version {} is the object's, delivers v{}", i + 1, version,
                         x.object.version);
    });
    x.pc = ReadPc::kFillCheck;
    deliver(x, x.object.version);
    return;
  }
  out_->say([&] { return fmt::format("reader {}: backend version {} is not the object's", i + 1, version); });
  go_on_at(x, ReadPc::kMiss);
}

bool Steps::joinable(const State& s, int i) const {
  const Reader& x = s.readers[i];
  const Byte leader = s.keys[x.key].leader;
  if (!world_.flights || leader == 0 || leader == i + 1) return false;
  const Reader& lead = s.readers[leader - 1];
  if (on(Rule::kFlightRecords) && covered_since(s, x.key, lead.start)) return false;
  return !on(Rule::kNoJoinWhileRunning) || !running(s, x.key) || lead.pc == ReadPc::kBackend;
}

void Steps::miss(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  if (x.stat != 0) {
    out_->say([&] { return fmt::format("reader {}: stat asks the backend", i + 1); });
    deliver(x, s.keys[0].version);
    return finish_read(s, i);
  }
  if (joinable(s, i)) {
    const Reader lead = s.readers[s.keys[x.key].leader - 1];
    out_->say([&] { return fmt::format("reader {}: joins the flight of reader {}", i + 1, s.keys[x.key].leader); });
    if (lead.pc == ReadPc::kBackend) {
      x.pc = ReadPc::kFollow;
    } else if (on(Rule::kFollowerRecheck)) {
      x.pc = ReadPc::kFollowReady;
      x.object.version = lead.object.version;
      x.start = lead.start;
    } else {
      deliver(x, lead.object.version);
      finish_read(s, i);
    }
    return;
  }
  x.registered = 1;
  x.start = s.clock;
  x.epoch = s.epoch;
  x.began = s.now;
  x.pc = world_.versioned() && on(Rule::kVersionBeforeBytes) ? ReadPc::kVersion : ReadPc::kBackend;
  if (world_.flights && s.keys[x.key].leader == 0) s.keys[x.key].leader = static_cast<Byte>(i + 1);
  out_->say([&] { return fmt::format("reader {}: miss, registers a fill with start {}", i + 1, x.start); });
}

void Steps::backend_read(int i) {
  const bool local = world_.kinds[now_->readers[i].key] == KeyKind::kNegative;
  State& s = add();
  Reader& x = s.readers[i];
  x.object.version = s.keys[x.key].version;
  if (world_.asks[i] == Ask::kList) x.object.detail = s.keys[0].version;
  x.pc = world_.versioned() && !on(Rule::kVersionBeforeBytes) ? ReadPc::kVersionLate : ReadPc::kFillCheck;
  out_->say([&] { return fmt::format("reader {}: backend read gives v{}, delivered", i + 1, x.object.version); });
  deliver(x, x.object.version);
  for (int other = 0; other < kReaders; ++other) {
    Reader& follows = s.readers[other];
    if (follows.pc != ReadPc::kFollow || follows.key != x.key) continue;
    if (on(Rule::kFollowerRecheck)) {
      follows.pc = ReadPc::kFollowReady;
      follows.object.version = x.object.version;
      follows.start = x.start;
      continue;
    }
    deliver(follows, x.object.version);
    finish_read(s, other);
  }
  if (!local) return;
  if (x.object.version % 2 == 1) finish_read(s, i);  // the path exists: nothing negative to keep
  if (on(Rule::kNegativeTrueNotFound)) return;
  State& failed = add();
  failed.readers[i].object.version = 0;  // what "not found" amounts to where the path existed all the time
  failed.readers[i].pc = ReadPc::kFillCheck;
  out_->say([&] { return fmt::format("reader {}: the backend reports an error, taken for `not found`", i + 1); });
}

void Steps::follower(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  if (!running(s, x.key) && !covered_since(s, x.key, x.start)) {
    out_->say([&] { return fmt::format("reader {}: follower delivers v{}", i + 1, x.object.version); });
    deliver(x, x.object.version);
    return finish_read(s, i);
  }
  out_->say([&] { return fmt::format("reader {}: follower refuses v{}", i + 1, x.object.version); });
  x.object = Object{};
  x.start = 0;
  x.pc = ReadPc::kMiss;
}

void Steps::fill_check(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  if (x.registered == 0 && !on(Rule::kRestampIsFill)) x.start = s.clock;
  const bool passes = !on(Rule::kFillCheck) || (!running(s, x.key) && !covered_since(s, x.key, x.start));
  const Byte epoch = on(Rule::kFillEpochAtStart) ? x.epoch : s.epoch;
  if (!passes || epoch == 0) {
    finish_read(s, i);
    out_->say([&] { return fmt::format("reader {}: the fill is not stored and ends", i + 1); });
    return;
  }
  x.object.present = 1;
  x.object.stamp = x.start;
  x.object.epoch = epoch;
  x.object.filled_at = on(Rule::kFilledAtBeforeBackend) ? x.began : s.now;
  x.pc = world_.near || world_.kinds[x.key] == KeyKind::kNegative ? ReadPc::kNearPut : ReadPc::kPut;
  out_->say([&] { return fmt::format("reader {}: fill check passes for {}", i + 1, object_words(x.object)); });
}

void Steps::near_put(int i) {
  State& s = add();
  Reader& x = s.readers[i];
  s.keys[x.key].near = x.object;
  out_->say([&] { return fmt::format("reader {}: keeps {} in the process", i + 1, object_words(x.object)); });
  if (x.hit != 0 || world_.kinds[x.key] == KeyKind::kNegative) return finish_read(s, i);
  x.pc = ReadPc::kPut;
}

void Steps::fill_put(int i) {
  if (now_->noticed != 0) return;
  const int key = now_->readers[i].key;
  const Object object = now_->readers[i].object;
  auto late = [&](State& s) {
    if (!room(s)) return false;
    put_late(s, {Late::kPut, static_cast<Byte>(key), object});
    return true;
  };
  call([&] { return fmt::format("reader {}: put of {}", i + 1, object_words(object)); },
       [&](State& s) { store(s, key, object); }, late,
       [&](State& s, Outcome outcome) {
         if (outcome == Outcome::kUnknown) mark_unknown(s, key, object);
         finish_read(s, i);
       });
}

void Steps::deliver(Reader& reader, Byte version) {
  if (version < reader.floor) out_->stale();
  reader.floor = 0;
}

void Steps::finish_read(State& s, int i) const {
  Byte& leader = s.keys[s.readers[i].key].leader;
  if (leader == i + 1) leader = 0;
  s.readers[i] = Reader{};
}

}  // namespace ragfs::model
