// HealthMonitor: whether the file system behind the server works, found out in the background.
//
// Every kInterval_ms a job on the worker pool looks at each mount's root and asks the provider. /health answers from
// the last result at once, so that it answers also when nothing else does; a check that does not come back is itself a
// finding. Not for: deciding anything about requests. Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/config/instance.h"
#include "ragfs/server/worker_pool.h"

namespace ragfs::server {

struct MountHealth {
  std::string path;
  std::string type;
  std::string error;  // "" = answers
};

struct HealthReport {
  std::vector<MountHealth> mounts;
  std::vector<std::string> problems;  // sentences for the operator; empty = healthy
  int64_t age_ms = 0;                 // of what is known of the mounts and the provider; -1 = nothing yet
};

class HealthMonitor {
 public:
  static constexpr int64_t kInterval_ms = 2'000;
  static constexpr int64_t kOverdue_ms = 10'000;

  HealthMonitor(Instance& instance, WorkerPool& pool) : instance_(instance), pool_(pool) {}
  // Starts a check when one is due; to be called often.
  void tick();
  HealthReport report();

 private:
  void check();

  Instance& instance_;
  WorkerPool& pool_;
  Mutex mutex_;
  std::vector<MountHealth> mounts_ RAGFS_GUARDED_BY(mutex_);
  std::string provider_error_ RAGFS_GUARDED_BY(mutex_);
  int64_t checked_at_ns_ RAGFS_GUARDED_BY(mutex_) = 0;  // monotonic; 0 = never
  int64_t begun_at_ns_ RAGFS_GUARDED_BY(mutex_) = 0;    // of the running check; 0 = none
};

}  // namespace ragfs::server
