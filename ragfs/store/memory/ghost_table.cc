#include "ragfs/store/memory/ghost_table.h"

#include <algorithm>

namespace ragfs {

namespace {
constexpr size_t kMostSlots = size_t{1} << 31;  // as many as a fingerprint tells apart
}  // namespace

void GhostTable::grow() {
  if (slots_.empty()) {
    slots_.resize(kWays);
    return;
  }
  // The set's number is the low bits of the fingerprint: each set is dealt out to two, in order.
  std::vector<uint32_t> old(slots_.size() * 2);
  old.swap(slots_);
  for (size_t set = 0; set < old.size(); set += kWays) {
    for (size_t way = kWays; way-- > 0;) {
      const uint32_t fingerprint = old[set + way];
      if (fingerprint == 0) continue;
      uint32_t* target = set_of(fingerprint);
      std::copy_backward(target, target + kWays - 1, target + kWays);
      target[0] = fingerprint;
    }
  }
}

void GhostTable::add(uint64_t hash, size_t capacity) {
  while (slots_.size() < capacity && slots_.size() < kMostSlots) grow();
  if (slots_.empty()) return;
  const uint32_t fingerprint = fingerprint_of(hash);
  uint32_t* set = set_of(fingerprint);
  std::copy_backward(set, set + kWays - 1, set + kWays);
  set[0] = fingerprint;
}

bool GhostTable::take(uint64_t hash) noexcept {
  if (slots_.empty()) return false;
  const uint32_t fingerprint = fingerprint_of(hash);
  uint32_t* set = set_of(fingerprint);
  uint32_t* found = std::find(set, set + kWays, fingerprint);
  if (found == set + kWays) return false;
  std::copy(found + 1, set + kWays, found);
  set[kWays - 1] = 0;
  return true;
}

}  // namespace ragfs
