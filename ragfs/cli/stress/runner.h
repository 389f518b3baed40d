// run_stress: threads read and mutate through the cache over everything that fails; the oracle judges every answer.
//
// A run is told by its setting, its configuration and its seed: each thread's operations and the faults' draws follow
// from it. How the threads interleave does not; where pause points are compiled in, threads stop at them for a moment,
// drawn at random, which makes rare interleavings common. A failure found here is made small and repeatable by
// shrink.h. Not for: measuring speed.
// Thread-safety: one run at a time in a process (pause points are the process's).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/cli/stress/oracle.h"
#include "ragfs/cli/stress/setting.h"

namespace ragfs::stress {

struct StressConfig {
  uint64_t seed = 1;
  uint32_t threads = 8;           // 1 to 32
  uint64_t operations = 100'000;  // of all threads together; 0 = until the deadline, or until `beside` returns
  Deadline deadline;              // ends the run early
  bool disturb = true;            // stop at pause points, at random
  // What is done to the engine meanwhile, on the calling thread. When it returns the run ends, if it has not by then.
  std::function<void(Stack& stack)> beside;
  // Called about every second from the calling thread, with the operations done. May be empty.
  std::function<void(uint64_t done)> progress;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

struct StressReport {
  std::string setting;
  uint64_t seed = 0;
  uint64_t operations = 0;
  uint64_t mutations = 0;
  uint64_t hits = 0;             // files, listings, stat and absence answered by the cache
  uint64_t provider_faults = 0;  // injected
  uint64_t landed_late = 0;      // provider and backend writes that landed after a timeout
  uint64_t new_epochs = 0;
  uint64_t read_ahead = 0;  // objects
  int64_t elapsed_ms = 0;
  uint64_t violations = 0;
  std::optional<Violation> first;
  std::vector<std::string> history;  // the last operations around the first violation, in the order of their ends

  bool passed() const { return violations == 0; }
  std::string text() const;
};

// Errors: config, and those of building the stack. A violation is no error: see the report.
Result<StressReport> run_stress(const StressSetting& setting, const StressConfig& config);

}  // namespace ragfs::stress
