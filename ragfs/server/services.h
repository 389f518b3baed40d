// Services: what the handlers of the API share. Thread-safety: as its members; the struct itself is set once at start.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "ragfs/config/instance.h"
#include "ragfs/server/connection_count.h"
#include "ragfs/server/handle_table.h"
#include "ragfs/server/health.h"
#include "ragfs/server/http_counters.h"
#include "ragfs/server/worker_pool.h"

namespace ragfs::server {

struct Services {
  Services(Instance& of, const ServerConfig& server, std::string program_version)
      : instance(of),
        config(server),
        version(std::move(program_version)),
        handles(static_cast<size_t>(server.max_handles)),
        pool(static_cast<size_t>(server.worker_threads), static_cast<size_t>(server.queue_limit)),
        health(of, pool) {}

  FileSystem& fs() { return instance.fs(); }

  Instance& instance;
  const ServerConfig config;
  const std::string version;
  HttpCounters counters;
  ConnectionCount connections;
  HandleTable handles;
  WorkerPool pool;
  HealthMonitor health;
  std::atomic<bool> draining{false};
  std::atomic<int> searches{0};  // greps that stream
};

}  // namespace ragfs::server
