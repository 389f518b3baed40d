#include "ragfs/config/factories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/base/memory_limit.h"
#include "ragfs/providers/disabled/disabled_provider.h"
#include "ragfs/providers/embedded/embedded_provider.h"
#include "ragfs/providers/redis/redis_provider.h"

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

std::optional<SecondTierConfig> disk_config(const DiskSection& disk) {
  if (disk.directories.empty()) return std::nullopt;
  SecondTierConfig config;
  for (const std::string& directory : disk.directories) {
    DiskTierConfig one;
    one.directory = directory;
    one.capacity_bytes = disk.capacity_bytes;
    one.bucket_bytes = disk.bucket_bytes;
    one.min_free_bytes = disk.min_free_bytes;
    one.hang_timeout_ms = disk.hang_timeout_ms;
    one.read_threads = static_cast<uint32_t>(disk.read_threads);
    one.direct_io = disk.direct_io;
    config.disks.push_back(std::move(one));
  }
  config.offload_on_put = disk.admission == "on_put";
  config.admit_all = disk.admission == "all" || config.offload_on_put;
  config.promote_hits = static_cast<uint32_t>(disk.promote_hits);
  config.queue_bytes = disk.queue_bytes;
  config.flush_ms = disk.flush_ms;
  return config;
}

Result<std::shared_ptr<CacheProvider>> open_embedded(const CacheConfig& cache, const std::shared_ptr<Log>& log) {
  EmbeddedConfig config;
  config.dram_bytes = cache.embedded.effective_dram_bytes(memory_limit_bytes());
  config.max_objects = static_cast<uint64_t>(cache.embedded.max_objects);
  config.max_object_bytes = std::min(cache.embedded.max_object_bytes, config.dram_bytes / 8);
  config.shards = static_cast<uint32_t>(cache.embedded.shards);
  config.account_share_percent = static_cast<uint32_t>(cache.embedded.account_share_percent);
  config.disk = disk_config(cache.embedded.disk);
  config.log = [log](std::string_view line) {
    if (log != nullptr) {
      log->write(LogLevel::warn, line);
    } else {
      fmt::print(stderr, "ragfs: {}\n", line);
    }
  };
  auto created = EmbeddedProvider::create(config);
  if (!created) return std::unexpected(created.error());
  return std::shared_ptr<CacheProvider>(std::move(*created));
}

// The secret in an environment variable or a file (its last line end is no part of it); "" when neither is named.
Result<std::string> secret(std::string_view field, const std::string& env, const std::string& file) {
  if (!env.empty()) {
    const char* value = std::getenv(env.c_str());
    if (value != nullptr && *value != '\0') return std::string(value);
    return fail(ErrorCode::config, fmt::format("{}_env: the environment variable {} is not set or empty", field, env));
  }
  if (file.empty()) return std::string();
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (!in || text.empty()) {
    return fail(ErrorCode::config, fmt::format("{}_file: {} cannot be read or is empty", field, file));
  }
  return text;
}

Result<redis::RedisConfig> redis_config(const CacheConfig& cache) {
  const RedisSection& section = cache.redis;
  redis::RedisConfig out;
  out.mode = section.mode == "sentinel"  ? redis::Mode::sentinel
             : section.mode == "cluster" ? redis::Mode::cluster
                                         : redis::Mode::standalone;
  for (const std::string& text : section.endpoints) {
    auto endpoint = redis::Endpoint::parse(text);
    if (!endpoint) return std::unexpected(endpoint.error());
    out.endpoints.push_back(*std::move(endpoint));
  }
  auto password = secret("redis.password", section.password_env, section.password_file);
  if (!password) return std::unexpected(password.error());
  auto sentinel = secret("redis.sentinel_password", section.sentinel_password_env, section.sentinel_password_file);
  if (!sentinel) return std::unexpected(sentinel.error());
  out.credentials = {section.username, *password};
  out.sentinel_credentials = {section.sentinel_username, *sentinel};
  out.master_name = section.master_name;
  out.db = section.db;
  out.key_prefix = section.key_prefix;
  out.hash_tag = section.hash_tag;
  out.pool_size = section.pool_size;
  out.connect_timeout_ms = section.connect_timeout_ms;
  out.max_batch_keys = section.max_batch_keys;
  out.max_batch_bytes = static_cast<int64_t>(section.max_batch_bytes);
  out.read_from_replica = section.read_from_replica;
  out.wait_replicas = section.wait_replicas;
  out.wait_aof = section.wait_aof;
  out.wait_timeout_ms = section.wait_timeout_ms;
  out.tls = {section.tls_ca_file, section.tls_cert_file, section.tls_key_file, section.tls_server_name,
             section.tls_insecure_skip_verify};
  return out;
}

Result<std::shared_ptr<CacheProvider>> open_redis(const CacheConfig& cache, const std::shared_ptr<Log>& /*log*/) {
  auto config = redis_config(cache);
  if (!config) return std::unexpected(config.error());
  auto created = redis::RedisProvider::create(*std::move(config));
  if (!created) return std::unexpected(created.error());
  return std::shared_ptr<CacheProvider>(std::move(*created));
}

Result<std::shared_ptr<CacheProvider>> open_disabled(const CacheConfig&, const std::shared_ptr<Log>&) {
  return std::make_shared<DisabledProvider>();
}

struct Backend {
  const char* name;
  Result<std::shared_ptr<FileSystem>> (*open)(const MountConfig&);
};
constexpr Backend kBackends[] = {{"localfs", open_localfs}, {"memfs", open_memfs}};

struct Provider {
  const char* name;
  Result<std::shared_ptr<CacheProvider>> (*open)(const CacheConfig&, const std::shared_ptr<Log>&);
};
constexpr Provider kProviders[] = {{"embedded", open_embedded}, {"redis", open_redis}, {"disabled", open_disabled}};

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

Result<std::shared_ptr<CacheProvider>> open_provider(const CacheConfig& cache, std::shared_ptr<Log> log) {
  for (const Provider& provider : kProviders) {
    if (cache.provider == provider.name) return provider.open(cache, log);
  }
  return fail(ErrorCode::config, fmt::format("cache provider \"{}\" is not in this build; it has {}", cache.provider,
                                             fmt::join(known_providers(), ", ")));
}

Result<std::shared_ptr<CacheProvider>> open_near_memory(const CacheConfig& cache, const CacheProvider& provider) {
  if (cache.near_cache_bytes == 0 || provider.capabilities().zero_copy) return std::shared_ptr<CacheProvider>();
  EmbeddedConfig config;
  config.dram_bytes = cache.near_cache_bytes;
  config.max_object_bytes = std::min(config.max_object_bytes, cache.near_cache_bytes / 8);
  auto created = EmbeddedProvider::create(config);
  if (!created) {
    return fail(created.error().code, fmt::format("near_cache_bytes: {}", created.error().message));
  }
  return std::shared_ptr<CacheProvider>(std::move(*created));
}

}  // namespace ragfs
