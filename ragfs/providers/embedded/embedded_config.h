// EmbeddedConfig: what the embedded provider is made of.
//
// For: the config reader and tests. Not for: defaults elsewhere; they are here. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>

#include "ragfs/base/clock.h"
#include "ragfs/base/error.h"
#include "ragfs/store/memory/memory_tier.h"
#include "ragfs/store/node/second_tier.h"

namespace ragfs {

struct EmbeddedConfig {
  uint64_t dram_bytes = uint64_t{256} << 20;       // memory for objects and index; 1 MiB to 512 GiB
  uint64_t max_objects = 0;                        // objects in all; 0 = as many as fit
  uint64_t max_object_bytes = uint64_t{16} << 20;  // key and value; never more than an eighth of dram_bytes
  uint32_t shards = 0;                             // power of two up to 256; 0 = by memory and CPUs
  uint32_t account_share_percent = 80;             // of dram_bytes, while it is full; 1 to 100 (no limit)
  const Clock* clock = &Clock::system();           // for TTLs; must outlive the provider
  std::optional<SecondTierConfig> disk;            // local disks behind the memory; none without. Its clock is ours
  StoreLog log;                                    // lines for the operator about the disks

  // Errors: config; the message names the field, its value and what is allowed.
  Result<void> validate() const;
  // `sink` must outlive the memory tier.
  MemoryTierConfig memory(EvictionSink* sink = nullptr) const;
};

}  // namespace ragfs
