// EngineConfig: what the engine provider is told at start.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::engine {

// What an engine can do (ragfs_engine_v1_abilities).
struct Abilities {
  bool native_ttl = false;
  bool whole_values = false;
  bool may_resurrect = false;
  bool outlives_process = true;
  uint32_t atomic_put = 0;
  uint32_t max_batch_keys = 64;
  uint64_t max_value_bytes = UINT64_MAX;
};

struct EngineConfig {
  std::string name = "engine";       // of the provider
  std::vector<std::string> command;  // process: a host, which gets the socket as descriptor 3 and the memory as 4
  std::string plugin;                // in_process: the plug-in
  bool in_process = false;
  std::vector<std::string> options;  // for the engine, "name=value"
  std::string key_prefix;            // before every key, with a ':' between; "" = nothing
  uint64_t arena_bytes = 64ULL << 20;
  uint64_t max_value_bytes = 8ULL << 20;
  int64_t connect_timeout_ms = 10'000;  // for a host to start and reach its engine
  int64_t start_wait_ms = 2'000;        // that making a provider waits for its engine
  int64_t first_pause_ms = 100;         // before a host is started again
  int64_t max_pause_ms = 5'000;
  int64_t hang_ms = 40'000;  // a host that has owed an answer for so long is killed
  Abilities assumed;         // while the engine was never reached: nothing it may turn out not to have
  std::function<void(std::string_view)> log;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

}  // namespace ragfs::engine
