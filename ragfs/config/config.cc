#include "ragfs/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "ragfs/base/path.h"
#include "ragfs/providers/redis/redis_config.h"

namespace ragfs {
namespace {

const std::string kCache = "storage.agfs.cache.";
constexpr uint64_t kLeastNearBytes = 1 << 20;
const std::string kMounts = "storage.agfs.mounts";

class Validator {
 public:
  explicit Validator(const Config& config) : config_(config) {}

  Result<void> run() {
    mounts();
    cache();
    redis();
    if (config_.cache.mooncake.protocol != "tcp" && config_.cache.mooncake.device_name.empty()) {
      wrong(kCache + "mooncake.device_name",
            fmt::format("is missing; protocol {} needs a device", config_.cache.mooncake.protocol));
    }
    server();
    if (problems_.empty()) return {};
    return fail(ErrorCode::config, fmt::format("{}", fmt::join(problems_, "\n")));
  }

 private:
  void wrong(const std::string& field, std::string_view what) {
    problems_.push_back(fmt::format("{}: {}", config_.place(field), what));
  }

  void mounts() {
    if (config_.mounts.empty() && !config_.mounts_come_later) {
      wrong(kMounts, "is empty; name at least one, such as [{path: /, type: localfs, local_dir: ./data}]");
    }
    for (size_t i = 0; i < config_.mounts.size(); ++i) {
      const MountConfig& mount = config_.mounts[i];
      const std::string field = fmt::format("{}[{}]", kMounts, i);
      const auto path = Path::parse(mount.path);
      if (!path) {
        wrong(field + ".path", path.error().message);
        continue;
      }
      for (size_t j = 0; j < i; ++j) {
        const auto other = Path::parse(config_.mounts[j].path);
        if (other && *other == *path) wrong(field + ".path", fmt::format("{} is mounted twice", path->text()));
      }
      if (mount.type == "localfs" && mount.local_dir.empty()) {
        wrong(field + ".local_dir", "is missing; localfs needs the directory that is shown");
      }
      const MountConfig defaults;
      only_for("localfs", mount, field + ".local_dir", !mount.local_dir.empty());
      only_for("localfs", mount, field + ".sync_writes", mount.sync_writes);
      only_for("memfs", mount, field + ".capacity_bytes", mount.capacity_bytes != defaults.capacity_bytes);
      only_for("memfs", mount, field + ".max_entries", mount.max_entries != defaults.max_entries);
    }
  }

  // A key of another type than the mount's would be silently without effect.
  void only_for(const std::string& type, const MountConfig& mount, const std::string& field, bool given) {
    if (given && mount.type != type) wrong(field, fmt::format("belongs to type {}, not to {}", type, mount.type));
  }

  void names(const std::string& field, const std::vector<std::string>& list) {
    for (const std::string& name : list) {
      if (name.find('/') != std::string::npos) {
        wrong(field, fmt::format("\"{}\" is not allowed in it; a file name without '/' is expected", name));
      }
    }
  }

  void prefixes(const std::string& field, const std::vector<std::string>& list) {
    for (const std::string& prefix : list) {
      const auto path = Path::parse(prefix);
      if (!path) wrong(field, fmt::format("\"{}\": {}", prefix, path.error().message));
    }
  }

  void cache() {
    const CacheConfig& cache = config_.cache;
    if (cache.negative.ttl_ms > 0 && cache.negative.ttl_ms < 100) {
      wrong(kCache + "negative.ttl_ms",
            fmt::format("{} is not allowed; 0 (off) or 100 to 1000 ms is expected", cache.negative.ttl_ms));
    }
    if (cache.near_cache_bytes > 0 && cache.near_cache_bytes < kLeastNearBytes) {
      wrong(kCache + "near_cache_bytes",
            fmt::format("{} is not allowed; 0 (off) or at least 1MiB is expected", cache.near_cache_bytes));
    }
    const int64_t shards = cache.embedded.shards;
    if ((shards & (shards - 1)) != 0) {
      wrong(kCache + "embedded.shards", fmt::format("{} is not allowed; 0 or a power of two is expected", shards));
    }
    const DiskSection& disk = cache.embedded.disk;
    if (!disk.directories.empty() && disk.capacity_bytes < 4 * disk.bucket_bytes) {
      wrong(kCache + "embedded.disk.capacity_bytes",
            fmt::format("{} is not allowed; at least four times bucket_bytes ({}) is expected", disk.capacity_bytes,
                        disk.bucket_bytes));
    }
    if (cache.name_space.size() > 255) wrong(kCache + "namespace", "is longer than 255 bytes");
    names(kCache + "negative.names", cache.negative.names);
    names(kCache + "preferred_names", cache.preferred_names);
    prefixes(kCache + "cacheable_prefixes", cache.cacheable_prefixes);
    prefixes(kCache + "bypass_prefixes", cache.bypass_prefixes);
    prefixes(kCache + "permission_dependent_prefixes", cache.permission_dependent_prefixes);
    prefixes(kCache + "negative_only_prefixes", cache.negative_only_prefixes);
    if (!cache.negative_only_prefixes.empty() && cache.negative.ttl_ms == 0) {
      wrong(kCache + "negative_only_prefixes", "needs negative.ttl_ms; without it nothing is remembered");
    }
    prefixes(kCache + "no_prefetch_prefixes", cache.no_prefetch_prefixes);
    const uint64_t dram_bytes = cache.embedded.dram_bytes;
    if (dram_bytes != 0 && dram_bytes < 1 << 20) {
      wrong(kCache + "embedded.dram_bytes",
            fmt::format("{} is not allowed; 0 (by itself) or at least 1048576 is expected", dram_bytes));
    } else if (cache.provider == "embedded" && dram_bytes != 0 && cache.max_file_size_bytes > dram_bytes) {
      wrong(kCache + "max_file_size_bytes",
            fmt::format("{} is not allowed; at most embedded.dram_bytes ({}) can be kept", cache.max_file_size_bytes,
                        dram_bytes));
    }
  }

  void exclusive(const std::string& env_field, const std::string& env, const std::string& file) {
    if (!env.empty() && !file.empty()) {
      wrong(kCache + env_field, "the environment variable and the file are both given; keep one");
    }
  }

  void redis() {
    const RedisSection& redis = config_.cache.redis;
    exclusive("redis.password_env", redis.password_env, redis.password_file);
    exclusive("redis.sentinel_password_env", redis.sentinel_password_env, redis.sentinel_password_file);
    if (redis.endpoints.empty()) wrong(kCache + "redis.endpoints", "is empty; name at least one server");
    bool tls = false;
    for (const std::string& endpoint : redis.endpoints) {
      tls = tls || endpoint.starts_with("rediss://");
      if (endpoint.find('@') != std::string::npos) {
        wrong(kCache + "redis.endpoints", "carries a user or password; use username and password_env");
      } else if (const auto parsed = ragfs::redis::Endpoint::parse(endpoint); !parsed) {
        wrong(kCache + "redis.endpoints", parsed.error().message);
      }
    }
    if (redis.tls_insecure_skip_verify && !tls) {
      wrong(kCache + "redis.tls_insecure_skip_verify", "true needs rediss:// endpoints");
    }
    if (redis.tls_cert_file.empty() != redis.tls_key_file.empty()) {
      wrong(kCache + "redis.tls_cert_file", "needs tls_key_file beside it, and the other way round");
    }
    if (redis.mode == "cluster" && redis.read_from_replica) {
      wrong(kCache + "redis.read_from_replica", "true is not supported in mode cluster");
    }
    if (redis.read_from_replica && config_.cache.default_ttl_seconds == 0) {
      wrong(kCache + "redis.read_from_replica", "true needs default_ttl_seconds: deletions are remembered that long");
    }
    if (redis.mode == "sentinel" && redis.master_name.empty()) {
      wrong(kCache + "redis.master_name", "is missing; mode sentinel needs it");
    }
    if (redis.mode == "cluster" && redis.db != 0) {
      wrong(kCache + "redis.db", fmt::format("{} is not allowed; a cluster has database 0 only", redis.db));
    }
  }

  void server() {
    const ServerConfig& server = config_.server;
    const auto one_of_two = [&](const std::string& field, bool wrong_together, std::string_view what) {
      if (wrong_together) wrong("server." + field, what);
    };
    one_of_two("tokens_env", !server.tokens_env.empty() && !server.tokens_file.empty(),
               "the environment variable and the file are both given; keep one");
    one_of_two("tls_key_file", server.tls_certificate_file.empty() != server.tls_key_file.empty(),
               "a certificate and its key go together; give both or none");
    const size_t colon = server.address.rfind(':');
    const std::string port = colon == std::string::npos ? "" : server.address.substr(colon + 1);
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || colon == 0 || std::stoul(port) > 65'535) {
      wrong("server.address",
            fmt::format("\"{}\" is not allowed; HOST:PORT is expected, an IPv6 host in brackets", server.address));
    }
    if (server.max_buffered_bytes < server.max_request_body_bytes) {
      wrong("server.max_buffered_bytes", "is less than max_request_body_bytes: no such body could be taken");
    }
  }

  const Config& config_;
  std::vector<std::string> problems_;
};

}  // namespace

int64_t CacheConfig::effective_operation_timeout_ms() const {
  if (operation_timeout_ms) return *operation_timeout_ms;
  return provider == "redis" ? 20 : 50;
}

uint64_t EmbeddedSection::effective_dram_bytes(uint64_t limit_bytes) const {
  constexpr uint64_t kDefault = 256ULL << 20;
  constexpr uint64_t kLeast = 8ULL << 20;
  if (dram_bytes != 0) return dram_bytes;
  return std::max(std::min(kDefault, limit_bytes / 4), kLeast);
}

std::string Config::place(const std::string& field_path) const {
  // A field that is not given stands where the nearest section above it stands.
  std::string above = field_path;
  for (;;) {
    const auto found = places.find(above);
    if (found != places.end()) {
      const std::string& shown = found->second.shown;
      return fmt::format("{}:{}: {}{}", source, found->second.line, shown, field_path.substr(above.size()));
    }
    const size_t dot = above.find_last_of(".[");
    if (dot == std::string::npos) break;
    above.resize(dot);
  }
  return source.empty() ? field_path : fmt::format("{}:1: {}", source, field_path);
}

Result<void> Config::validate() const { return Validator(*this).run(); }

Config Config::for_root(const std::string& directory) {
  Config config;
  MountConfig mount;
  mount.path = "/";
  mount.type = "localfs";
  mount.local_dir = directory;
  mount.revalidate_ms = 1000;
  config.mounts.push_back(std::move(mount));
  return config;
}

}  // namespace ragfs
