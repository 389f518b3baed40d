// Options: what a client is made with: the sections that OpenViking passes, its ov.conf, and our own file.
//
// What OpenViking's own models would reject (provider "embedded", sizes, `shared` path locks) comes from the YAML file
// that the environment variable RAGFS_CONFIG names. Not for: mounts, which are made by calls.
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "python/answer.h"
#include "ragfs/config/config.h"

namespace ragfs::python {

struct Options {
  bool cache_on = false;
  Config config;                           // its cache section is what counts
  double lock_expire_secs = 30.0;          // a lease that is not refreshed for twice as long is taken back
  double lock_timeout_secs = 0.0;          // how long an operation waits for its lock
  bool locks_shared = false;               // keep lock files, for other processes that work on the same tree
  std::optional<std::string> git_backend;  // what health() says
};

// `config` is null when none was given; "" = no path. Errors: ValueError, RuntimeError, TypeError in the original's
// words.
Answer<Options> parse_options(const std::string& config_path, const nlohmann::json& config,
                              const std::string& git_config_path);

}  // namespace ragfs::python
