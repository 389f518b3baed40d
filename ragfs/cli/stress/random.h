// Random: a small seeded generator, so that a run is told by its seed on every machine and standard library.
//
// Not for: anything secret. Thread-safety: a value of one thread.
#pragma once

#include <cassert>
#include <cstdint>

#include "ragfs/base/hash.h"

namespace ragfs::stress {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return mix64(state_);
  }
  // 0 to below - 1; `below` is at least 1.
  uint64_t below(uint64_t below) {
    assert(below > 0);
    return next() % below;
  }
  // True `per_million` times in a million.
  bool chance(uint32_t per_million) { return per_million > 0 && below(1'000'000) < per_million; }

 private:
  uint64_t state_;
};

}  // namespace ragfs::stress
