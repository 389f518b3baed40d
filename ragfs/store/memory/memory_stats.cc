#include "ragfs/store/memory/memory_stats.h"

#include "ragfs/base/hash.h"

namespace ragfs {

size_t MemoryTierCounters::stripe_of_thread() noexcept {
  // The address of a thread's own variable tells threads apart without a registry.
  thread_local const char here = 0;
  thread_local const size_t stripe = mix64(reinterpret_cast<uint64_t>(&here)) % kStripes;
  return stripe;
}

}  // namespace ragfs
