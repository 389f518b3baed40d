// LocalConfig: one localfs. Not for: anything that changes while it runs. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>

#include "ragfs/base/error.h"

namespace ragfs {

struct LocalConfig {
  // The host directory that is the root of the tree. Required; must exist when the file system is opened.
  std::string root_dir;
  // fdatasync a file before it takes its name, and fsync the directory after it. Off: a power cut may lose the last
  // writes, as with any program that does not sync.
  bool sync_writes = false;
  // Milliseconds after which a temporary file of a process that cannot be asked (another machine, a reused pid) counts
  // as left behind by a crash. Those of dead processes of this machine are recognised at once.
  int64_t stale_temp_age_ms = 3'600'000;
  // Times that a file is read when it changes during the read, before the read fails with `io`.
  int snapshot_attempts = 8;

  // Errors: config, naming the field, its value and what is allowed.
  Result<void> validate() const;
};

}  // namespace ragfs
