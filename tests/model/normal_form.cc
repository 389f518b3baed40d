// The normal form: moments that no step can tell apart become equal bytes, which makes the state space finite with any
// number of restarts, and small.
//
// Dead: an object that has expired, or whose epoch can never be the current one again, is as good as none: a read
// refuses it, and overwriting with it is an eviction. A marker or pointer of a life that the witness cannot name again
// is as good as none: the start is cold. Each holds only while the rule that refuses it does.
// Renumbered: lives and epochs are compared for equality alone, so those in use are numbered 1, 2, ... by age.
#include <bit>

#include "tests/model/steps.h"

namespace ragfs::model {
namespace {

// Calls `visit(Byte&)` on every life or epoch in the state.
template <class AnyState, class Visit>
void each_life(AnyState& s, Visit visit) {
  visit(s.epoch);
  visit(s.life);
  // While the process closes, `attempt` is the number of the marker.
  if (s.process != Process::kClosing) visit(s.attempt);
  visit(s.old_witness);
  visit(s.witness);
  visit(s.pointer.life);
  visit(s.pointer.epoch);
  visit(s.replica.pointer.life);
  visit(s.replica.pointer.epoch);
  for (auto& marker : s.markers) {
    visit(marker.life);
    visit(marker.epoch);
  }
  for (auto& call : s.late) {
    visit(call.object.epoch);
    if (call.kind == Late::kPointer) visit(call.at);
  }
  for (auto& object : s.replica.stored) visit(object.epoch);
  for (auto& key : s.keys) {
    visit(key.stored.epoch);
    visit(key.near.epoch);
    visit(key.ghost.epoch);
    visit(key.mark_epoch);
  }
  for (auto& reader : s.readers) {
    visit(reader.object.epoch);
    visit(reader.epoch);
    visit(reader.captured_epoch);
  }
  for (auto& writer : s.writers) visit(writer.put_epoch);
}

}  // namespace

// Bit n: life n is named somewhere.
uint32_t Steps::lives_in_use(const State& s) {
  uint32_t used = 0;
  each_life(s, [&](Byte life) { used |= uint32_t{1} << life; });
  return used & ~uint32_t{1};
}

Byte Steps::fresh_life(const State& s) { return static_cast<Byte>(std::bit_width(lives_in_use(s) | 1)); }

void Steps::drop_dead(State& s) const {
  if (on(Rule::kWitness)) {
    auto named = [&](Byte life) { return life == s.witness || life == s.old_witness; };
    auto ours = [&](Byte life) { return named(life) || life == s.life || life == s.attempt; };
    for (size_t i = 0; i < kMaxMarkers; ++i) {
      if (s.process == Process::kClosing && s.attempt == i) continue;
      const bool void_here = on(Rule::kMarkerIncarnation) && s.markers[i].old_incarnation != 0;
      if (on(Rule::kMarkerNamedByLife) && (void_here || !named(s.markers[i].life))) s.markers[i] = Marker{};
    }
    const bool closing = s.process == Process::kClosing;
    if (!closing && !ours(s.pointer.life)) s.pointer = Pointer{};
    if (!closing && !ours(s.replica.pointer.life)) s.replica.pointer = Pointer{};
    for (LateCall& call : s.late) {
      if (!closing && call.kind == Late::kPointer && !ours(call.at)) call = LateCall{};
    }
  }
  uint32_t live_epochs = uint32_t{1} << s.epoch | uint32_t{1} << s.attempt | uint32_t{1} << s.pointer.epoch |
                         uint32_t{1} << s.replica.pointer.epoch;
  for (const Marker& marker : s.markers) live_epochs |= uint32_t{1} << marker.epoch;
  for (const LateCall& call : s.late) {
    if (call.kind == Late::kPointer) live_epochs |= uint32_t{1} << call.object.epoch;
  }
  const bool by_epoch = world_.restarts && !world_.verify_inherited && on(Rule::kEpochOnHit);
  auto drop = [&](Object& object) {
    const bool dead = expired(s, object) || (by_epoch && (live_epochs >> object.epoch & 1) == 0);
    if (object.present != 0 && dead) object = Object{};
  };
  for (int k = 0; k < world_.keys; ++k) {
    Key& key = s.keys[k];
    drop(key.stored);
    if (world_.kinds[k] == KeyKind::kObject || on(Rule::kNegativeEpoch)) drop(key.near);
    drop(key.ghost);
  }
  for (Object& object : s.replica.stored) drop(object);
  for (Reader& reader : s.readers) {
    const bool looks = world_.kinds[reader.key] == KeyKind::kObject || on(Rule::kNegativeEpoch);
    const bool decided =
        reader.pc == ReadPc::kCheck && by_epoch && looks && (live_epochs >> reader.object.epoch & 1) == 0;
    if (decided) refuse(reader);
  }
  for (LateCall& call : s.late) {
    if (call.kind != Late::kPut) continue;
    drop(call.object);
    if (call.object.present == 0) call = LateCall{};
  }
}

void Steps::normalise(State& s) const {
  if (!world_.restarts && world_.ttl == 0) return;
  drop_dead(s);
  sort_late(s);
  if (!world_.restarts) return;
  const uint32_t used = lives_in_use(s);
  if (std::has_single_bit(used + 2)) return;  // 1, 2, ..., n already
  each_life(s, [&](Byte& life) { life = static_cast<Byte>(std::popcount(used & ((uint32_t{2} << life) - 1))); });
}

}  // namespace ragfs::model
