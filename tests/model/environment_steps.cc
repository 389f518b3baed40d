// What happens by itself: late calls land, the provider forgets, resurrects and fails over, time passes, the backend is
// edited behind the cache.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "tests/model/steps.h"

namespace ragfs::model {

void Steps::environment() {
  late_calls();
  forget();
  if (world_.failovers > 0) fail_over();
  if (now_->noticed != 0) notice();
  if (world_.ticks > 0) time_passes();
}

bool Steps::room(const State& s) const {
  for (int i = 0; i < world_.late; ++i) {
    if (s.late[i].kind == Late::kNone) return true;
  }
  return false;
}

void Steps::put_late(State& s, const LateCall& call) {
  auto* free = std::find_if(s.late.begin(), s.late.end(), [](const LateCall& c) { return c.kind == Late::kNone; });
  if (free == s.late.end()) return;
  *free = call;
  sort_late(s);
}

// Calls under way have no order.
void Steps::sort_late(State& s) {
  std::sort(s.late.begin(), s.late.end(),
            [](const LateCall& a, const LateCall& b) { return std::memcmp(&a, &b, sizeof a) > 0; });
}

// The effect of a put, or with no object of an erase.
void Steps::store(State& s, int key, const Object& object) const {
  Object& stored = s.keys[key].stored;
  if (world_.resurrects && stored.present != 0) s.keys[key].ghost = stored;
  stored = object;
}

// One marker a life; without that rule one for all, and a late one overwrites.
void Steps::land_marker(State& s, int marker) const {
  if (!on(Rule::kMarkerNamedByLife)) {
    for (int other = 0; other < kMaxMarkers; ++other) {
      if (other != marker && s.markers[other].state == 2) s.markers[other] = Marker{};
    }
  }
  s.markers[marker].state = 2;
}

void Steps::late_calls() {
  for (size_t i = 0; i < kMaxLate; ++i) {
    const LateCall& call = now_->late[i];
    if (call.kind == Late::kNone) continue;
    State& s = add();
    s.late[i] = LateCall{};
    sort_late(s);
    if (call.kind == Late::kPut) {
      store(s, call.at, call.object);
      out_->say([&] {
        return fmt::format("a timed-out put of v{} (stamp {}, epoch {}) lands late", call.object.version,
                           call.object.stamp, call.object.epoch);
      });
    } else if (call.kind == Late::kPointer) {
      s.pointer = {call.at, call.object.epoch};
      out_->say([&] {
        return fmt::format("a timed-out pointer write (life {}, epoch {}) lands late", call.at, call.object.epoch);
      });
    } else {
      Writer& w = s.writers[call.at];
      if (w.pc == WritePc::kDone && w.landed == 2) w.landed = 3;
      for (int k = 0; k < world_.keys; ++k) {
        if (!plans_[call.at][k].changes) continue;
        s.keys[k].floor = ++s.keys[k].version;
      }
      out_->say([&] { return fmt::format("the timed-out backend call of writer {} lands late", call.at + 1); });
    }
  }
  for (size_t m = 0; m < world_.mutations.size(); ++m) {
    const Writer& w = now_->writers[m];
    if (w.pc != WritePc::kDone || w.landed != 3 || !serves(*now_)) continue;
    State& s = add();
    s.writers[m].value = ++s.clock;
    set_records(s, static_cast<int>(m), true);
    s.writers[m].value = s.writers[m].landed = 0;
    out_->say([&] {
      return fmt::format("writer {}: its late call can land no more: record {} set, unmarked", m + 1, s.clock);
    });
  }
  for (int i = 0; i < kMaxMarkers; ++i) {
    const bool under_way = now_->markers[i].state == 1;
    if (!under_way || (now_->process == Process::kClosing && now_->attempt == i)) continue;
    land_marker(add(), i);
    out_->say([&] { return fmt::format("the timed-out marker of life {} lands late", now_->markers[i].life); });
  }
}

void Steps::forget() {
  for (int k = 0; k < world_.keys; ++k) {
    if (now_->keys[k].stored.present != 0) {
      add().keys[k].stored = Object{};
      out_->say([&] { return fmt::format("the provider evicts key {}", k); });
    }
    if (now_->keys[k].ghost.present != 0) {
      State& s = add();
      s.keys[k].stored = s.keys[k].ghost;
      out_->say([&] { return fmt::format("the provider brings back v{} of key {}", s.keys[k].stored.version, k); });
    }
  }
  if (world_.restarts && now_->pointer.life != 0) {
    add().pointer = Pointer{};
    out_->say([] { return std::string("the provider evicts the epoch pointer"); });
  }
}

void Steps::fail_over() {
  if (now_->failovers == 0) return;
  if (now_->replica.taken == 0) {
    State& s = add();
    s.replica.taken = 1;
    s.replica.pointer = s.pointer;
    for (int i = 0; i < kMaxMarkers; ++i) {
      if (s.markers[i].state == 2) s.replica.markers = static_cast<Byte>(s.replica.markers | 1U << i);
    }
    for (int k = 0; k < world_.keys; ++k) s.replica.stored[k] = s.keys[k].stored;
    out_->say([] { return std::string("the provider's replica stops following here"); });
    return;
  }
  for (const bool whole : {true, false}) {
    State& s = add();
    --s.failovers;
    for (Marker& marker : s.markers) marker.old_incarnation = marker.state != 0 ? 1 : 0;
    for (int k = 0; k < world_.keys; ++k) s.keys[k].stored = s.replica.stored[k];
    if (whole) {
      s.pointer = s.replica.pointer;
      for (int i = 0; i < kMaxMarkers; ++i) {
        if (s.markers[i].state == 2 && (s.replica.markers >> i & 1) == 0) s.markers[i] = Marker{};
      }
    }
    s.replica = Replica{};
    const bool connected = serves(s) || s.process == Process::kReadMarker || s.process == Process::kWritePointer;
    s.noticed = connected && on(Rule::kEpochOnIncarnation) ? 1 : 0;
    out_->say([&] {
      return whole ? std::string("failover: the provider is back at the replica's state")
                   : std::string("failover of the key's shard alone");
    });
  }
}

// The client sees another incarnation, before it believes the first answer of the new connection.
void Steps::notice() {
  State& s = add();
  s.noticed = 0;
  if (s.process == Process::kReadMarker) {
    out_->say([] { return std::string("start: the incarnation is read again"); });
    return;
  }
  s.attempt = 0;
  fresh_attempt(s);
  if (serves(s)) {
    s.epoch = 0;
    s.process = Process::kRejoin;
    out_->say(
        [&] { return fmt::format("the new incarnation is seen: a new epoch is attempted as life {}", s.attempt); });
    return;
  }
  // A start that was about to write its pointer begins again: what it took from the marker is void.
  s.warm = s.epoch = s.clock = 0;
  for (Key& key : s.keys) {
    drop_record(key);
    key.mark = key.mark_epoch = 0;
  }
  s.subtrees = {};
  s.process = Process::kReadMarker;
  out_->say([] { return std::string("start: the new incarnation is seen, the start begins again"); });
}

void Steps::time_passes() {
  if (now_->now < world_.ticks) {
    State& s = add();
    ++s.now;
    for (int k = 0; k < world_.keys; ++k) {
      Key& key = s.keys[k];
      if (key.edited == 0 || s.now < key.edit_due) continue;
      key.floor = bigger(key.floor, key.edited);
      key.edited = key.edit_due = 0;
    }
    out_->say([&] { return fmt::format("time passes: tick {}", s.now); });
  }
  if (now_->edits > 0 && now_->keys[0].edited == 0) {
    State& s = add();
    --s.edits;
    Key& key = s.keys[0];
    key.edited = ++key.version;
    key.edit_due = static_cast<Byte>(s.now + world_.revalidate);
    out_->say([&] { return fmt::format("the backend is edited behind the cache: v{}", key.version); });
  }
}

}  // namespace ragfs::model
