// MemConfig: what one memfs may use. Not for: anything that changes while it runs. Thread-safety: a value.
#pragma once

#include <cstdint>

#include "ragfs/base/error.h"

namespace ragfs {

struct MemConfig {
  // Bytes of all files and names together; a write past it fails with `full`. Memory that readers still hold of removed
  // files comes on top.
  uint64_t capacity_bytes = 4ULL << 30;
  // Files and directories; past it `full`.
  uint64_t max_entries = 4'000'000;

  // Errors: config, naming the field, its value and what is allowed.
  Result<void> validate() const;
};

}  // namespace ragfs
