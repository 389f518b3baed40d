#include "tests/model/state.h"

#include <cstring>
#include <utility>

namespace ragfs::model {
namespace {

uint64_t hash_bytes(const State& state) {
  constexpr uint64_t kMultiplier = 0xD6E8FEB86659FD93ULL;
  const auto* at = reinterpret_cast<const unsigned char*>(&state);
  uint64_t hash = 0x9E3779B97F4A7C15ULL;
  size_t left = sizeof(State);
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, at, left);
  hash = (hash ^ rest) * kMultiplier;
  return hash ^ hash >> 29;
}

}  // namespace

State first_state(const World& world, bool cached) {
  State state{};
  state.process = Process::kUp;
  state.epoch = state.life = state.witness = 1;
  state.pointer = {1, 1};
  state.crashes = static_cast<Byte>(world.crashes);
  state.closes = static_cast<Byte>(world.closes);
  state.failovers = static_cast<Byte>(world.failovers);
  state.folds = static_cast<Byte>(world.folds);
  state.edits = static_cast<Byte>(world.edits);
  for (int k = 0; k < world.keys; ++k) {
    Key& key = state.keys[k];
    key.version = key.floor = world.first_version;
    const Byte detail = world.versioned() ? world.first_version : 0;
    const Object object{1, world.first_version, 0, 1, 0, detail};
    if (!cached) continue;
    if (world.kinds[k] == KeyKind::kObject) key.stored = object;
    if (world.kinds[k] == KeyKind::kNegative && world.first_version % 2 == 0) key.near = object;
  }
  for (size_t m = world.mutations.size(); m < kMaxMutations; ++m) state.writers[m].pc = WritePc::kDone;
  return state;
}

uint64_t fingerprint(const World& world, const State& state) {
  const bool alike = world.asks[0] == world.asks[1];
  if (!alike || std::memcmp(&state.readers[0], &state.readers[1], sizeof(Reader)) <= 0) return hash_bytes(state) | 1;
  State swapped = state;
  std::swap(swapped.readers[0], swapped.readers[1]);
  for (Key& key : swapped.keys) {
    if (key.leader != 0) key.leader = static_cast<Byte>(3 - key.leader);
  }
  return hash_bytes(swapped) | 1;  // 0 is the empty slot of the visited set
}

}  // namespace ragfs::model
