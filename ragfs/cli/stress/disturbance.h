// Disturbance: while it lives, threads that reach a pause point of the cache sometimes stop there for a moment.
//
// It makes interleavings common that a scheduler would seldom give. Without RAGFS_TEST_HOOKS it does nothing.
// Not for: tests that need one certain interleaving (arm a pause point).
// Thread-safety: made and destroyed on one thread; one at a time in a process.
#pragma once

#include <cstdint>

namespace ragfs::stress {

class Disturbance {
 public:
  explicit Disturbance(uint64_t seed);
  ~Disturbance();
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;
};

}  // namespace ragfs::stress
