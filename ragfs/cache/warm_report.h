// WarmReport: what warming a cache with the hottest keys did (`ragfs cache warm`).
//
// Thread-safety: a value.
#pragma once

#include <cstdint>

namespace ragfs {

struct WarmReport {
  uint64_t keys = 0;    // hot ones that were looked up
  uint64_t cached = 0;  // of them: were there already
  uint64_t read = 0;    // read from the backend
  uint64_t bytes = 0;   // of those
  uint64_t gone = 0;    // do not exist any more
  uint64_t failed = 0;  // could not be read
};

}  // namespace ragfs
