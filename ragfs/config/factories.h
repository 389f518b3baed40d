// Factories: a backend or a provider from its section of the configuration, by name.
//
// The only place that knows which kinds this build has. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/log.h"
#include "ragfs/cache/provider.h"
#include "ragfs/config/config.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

std::vector<std::string> known_backends();
std::vector<std::string> known_providers();

// Errors: config, naming the kind, when it is unknown or not in this build; those of the backend itself, such as a
// directory that does not exist.
Result<std::shared_ptr<FileSystem>> open_backend(const MountConfig& mount);

// Errors: config, naming the provider, when it is unknown or not in this build; those of the provider.
Result<std::shared_ptr<CacheProvider>> open_provider(const CacheConfig& cache, std::shared_ptr<Log> log = nullptr);

// Memory of this process for the near tier in front of `provider`; nullptr where it is turned off or of no use (the
// provider is in this process itself). Errors: full (no address space).
Result<std::shared_ptr<CacheProvider>> open_near_memory(const CacheConfig& cache, const CacheProvider& provider);

}  // namespace ragfs
