#include "ragfs/config/factories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/providers/disabled/disabled_provider.h"
#include "ragfs/providers/embedded/embedded_provider.h"

namespace ragfs {
namespace {

Result<std::shared_ptr<FileSystem>> open_localfs(const MountConfig& mount) {
  LocalConfig config;
  config.root_dir = mount.local_dir;
  config.sync_writes = mount.sync_writes;
  auto opened = LocalFileSystem::open(config);
  if (!opened) return std::unexpected(opened.error());
  return std::shared_ptr<FileSystem>(std::move(*opened));
}

Result<std::shared_ptr<FileSystem>> open_memfs(const MountConfig& mount) {
  MemConfig config;
  config.capacity_bytes = mount.capacity_bytes;
  config.max_entries = static_cast<uint64_t>(mount.max_entries);
  auto opened = MemFileSystem::open(config);
  if (!opened) return std::unexpected(opened.error());
  return std::shared_ptr<FileSystem>(std::move(*opened));
}

Result<std::shared_ptr<CacheProvider>> open_embedded(const CacheConfig& cache) {
  EmbeddedConfig config;
  config.dram_bytes = cache.embedded.dram_bytes;
  config.max_objects = static_cast<uint64_t>(cache.embedded.max_objects);
  config.max_object_bytes = std::min(cache.embedded.max_object_bytes, cache.embedded.dram_bytes / 8);
  config.shards = static_cast<uint32_t>(cache.embedded.shards);
  auto created = EmbeddedProvider::create(config);
  if (!created) return std::unexpected(created.error());
  return std::shared_ptr<CacheProvider>(std::move(*created));
}

Result<std::shared_ptr<CacheProvider>> open_disabled(const CacheConfig&) {
  return std::make_shared<DisabledProvider>();
}

struct Backend {
  const char* name;
  Result<std::shared_ptr<FileSystem>> (*open)(const MountConfig&);
};
constexpr Backend kBackends[] = {{"localfs", open_localfs}, {"memfs", open_memfs}};

struct Provider {
  const char* name;
  Result<std::shared_ptr<CacheProvider>> (*open)(const CacheConfig&);
};
constexpr Provider kProviders[] = {{"embedded", open_embedded}, {"disabled", open_disabled}};

}  // namespace

std::vector<std::string> known_backends() {
  std::vector<std::string> names;
  for (const Backend& backend : kBackends) names.emplace_back(backend.name);
  return names;
}

std::vector<std::string> known_providers() {
  std::vector<std::string> names;
  for (const Provider& provider : kProviders) names.emplace_back(provider.name);
  return names;
}

Result<std::shared_ptr<FileSystem>> open_backend(const MountConfig& mount) {
  for (const Backend& backend : kBackends) {
    if (mount.type == backend.name) return backend.open(mount);
  }
  return fail(ErrorCode::config, fmt::format("backend \"{}\" is not in this build; it has {}", mount.type,
                                             fmt::join(known_backends(), ", ")));
}

Result<std::shared_ptr<CacheProvider>> open_provider(const CacheConfig& cache) {
  for (const Provider& provider : kProviders) {
    if (cache.provider == provider.name) return provider.open(cache);
  }
  return fail(ErrorCode::config, fmt::format("cache provider \"{}\" is not in this build; it has {}", cache.provider,
                                             fmt::join(known_providers(), ", ")));
}

}  // namespace ragfs
