// PrefetchConfig: how much may be read ahead, in one coherence domain.
//
// Read by PrefetchLane (the bounds) and by CachedFileSystem::ReadAhead (the triggers). Thread-safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ragfs/base/error.h"

namespace ragfs {

struct PrefetchConfig {
  bool enabled = false;
  uint32_t concurrency = 2;                        // backend reads ahead at once; threads
  size_t max_queued = 256;                         // tasks that wait; beyond, those of low priority are dropped first
  size_t max_objects = 16;                         // that one task of a trigger reads; 4 to 16
  int64_t cooldown_ms = 2'000;                     // before the same trigger of a path counts again; 1 to 10,000
  uint64_t bytes_per_second = uint64_t{32} << 20;  // that are read ahead from the backends
  uint64_t busy_reads_per_second = 20'000;         // of all readers; while they ask more often it gives way; 0: never

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

}  // namespace ragfs
