#include "python/options.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "ragfs/config/factories.h"
#include "ragfs/config/loader.h"

namespace ragfs::python {
namespace {

using Json = nlohmann::json;

constexpr size_t kRootKeyBytes = 32;

std::unexpected<Raised> bad_cache(const std::string& text) {
  return raise("RuntimeError", "Invalid cache config: " + text);
}
std::unexpected<Raised> bad_value(const std::string& text) { return raise("ValueError", text); }

Answer<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return raise("", fmt::format("{}: {} (os error {})", path, ::strerror(errno), errno));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_known_provider(const std::string& name) {
  const std::vector<std::string> known = known_providers();
  return std::ranges::find(known, name) != known.end();
}

// The name that ours has for a provider's name in an OpenViking configuration.
std::string provider_name(const std::string& name) { return name == "memory" ? "embedded" : name; }

// Text, whole number, flag or list of a section; false when it is of another type.
template <typename T>
bool take(const Json& section, const char* key, T& into) {
  const auto at = section.find(key);
  if (at == section.end() || at->is_null()) return true;
  if constexpr (std::is_same_v<T, bool>) {
    if (!at->is_boolean()) return false;
  } else if constexpr (std::is_integral_v<T>) {
    if (!at->is_number_integer()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!at->is_string()) return false;
  } else {
    if (!at->is_array() || !std::ranges::all_of(*at, [](const Json& item) { return item.is_string(); })) return false;
  }
  into = at->get<T>();
  return true;
}

Answer<void> parse_redis(const Json& redis, CacheConfig& cache) {
  constexpr std::array<std::string_view, 15> kKnown = {"mode",
                                                       "endpoints",
                                                       "username",
                                                       "password",
                                                       "password_env",
                                                       "master_name",
                                                       "sentinel_username",
                                                       "sentinel_password",
                                                       "sentinel_password_env",
                                                       "db",
                                                       "pool_size",
                                                       "connect_timeout_ms",
                                                       "command_timeout_ms",
                                                       "default_ttl_seconds",
                                                       "tls_insecure_skip_verify"};
  if (!redis.is_object()) return bad_cache("redis must be an object");
  for (const auto& [key, value] : redis.items()) {
    if (std::ranges::find(kKnown, key) == kKnown.end()) {
      return bad_cache(fmt::format("unsupported cache.redis field: {}", key));
    }
  }
  RedisSection& out = cache.redis;
  int64_t command_timeout_ms = 20;
  const bool sound =
      take(redis, "mode", out.mode) && take(redis, "endpoints", out.endpoints) &&
      take(redis, "username", out.username) && take(redis, "password_env", out.password_env) &&
      take(redis, "master_name", out.master_name) && take(redis, "sentinel_username", out.sentinel_username) &&
      take(redis, "sentinel_password_env", out.sentinel_password_env) && take(redis, "db", out.db) &&
      take(redis, "pool_size", out.pool_size) && take(redis, "connect_timeout_ms", out.connect_timeout_ms) &&
      take(redis, "command_timeout_ms", command_timeout_ms) &&
      take(redis, "default_ttl_seconds", cache.default_ttl_seconds) &&
      take(redis, "tls_insecure_skip_verify", out.tls_insecure_skip_verify);
  if (!sound) return bad_cache("a field of cache.redis has the wrong type");
  for (const char* secret : {"password", "sentinel_password"}) {
    std::string text;
    if (!take(redis, secret, text)) return bad_cache("a field of cache.redis has the wrong type");
    if (text.empty()) continue;
    return bad_cache(fmt::format("cache.redis.{0} is not supported by this build: use {0}_env", secret));
  }
  cache.operation_timeout_ms = command_timeout_ms;
  return {};
}

Answer<void> parse_provider(const Json& section, Options& options) {
  std::string provider = "redis";
  if (!take(section, "provider", provider)) return bad_cache("provider must be a string");
  if (provider == "dynamic") {
    const Json dynamic = section.value("dynamic", Json::object());
    std::string library;
    if (!dynamic.is_object() || !take(dynamic, "library", library) || library.empty()) {
      return bad_cache("cache dynamic provider library must not be empty");
    }
  } else if (provider != "redis" && !is_known_provider(provider_name(provider))) {
    return bad_cache(fmt::format("unsupported cache.provider: {}; expected redis or dynamic", provider));
  }
  options.config.cache.provider = provider_name(provider);
  return {};
}

Answer<void> parse_cache(const Json& section, Options& options) {
  if (!section.is_object()) return bad_cache("binding cache config must be an object");
  if (!take(section, "enabled", options.cache_on)) return bad_cache("enabled must be a boolean");
  bool runtime_on = false;
  if (!take(section, "runtime_enabled", runtime_on)) return bad_cache("runtime_enabled must be a boolean");
  int64_t max_file_size = static_cast<int64_t>(options.config.cache.max_file_size_bytes);
  if (!take(section, "max_file_size_bytes", max_file_size) || max_file_size <= 0) {
    return bad_cache("max_file_size_bytes must be a positive integer");
  }
  options.config.cache.max_file_size_bytes = static_cast<uint64_t>(max_file_size);
  std::string traversal = "backend";
  if (!take(section, "traversal_mode", traversal)) return bad_cache("traversal_mode must be a string");
  if (traversal != "backend" && traversal != "cached_traversal") {
    return bad_cache(
        fmt::format("unsupported cachefs.traversal_mode: {}; expected backend or cached_traversal", traversal));
  }
  if (!take(section, "bypass_prefixes", options.config.cache.bypass_prefixes)) {
    return bad_cache("bypass_prefixes must be an array of strings");
  }
  if (options.cache_on || runtime_on) {
    if (auto parsed = parse_provider(section, options); !parsed) return parsed;
  }
  if (section.contains("redis")) {
    if (auto parsed = parse_redis(section["redis"], options.config.cache); !parsed) return parsed;
  }
  const std::string& mode = options.config.cache.redis.mode;
  const bool uses_redis = (options.cache_on || runtime_on) && options.config.cache.provider == "redis";
  if (uses_redis && mode != "standalone" && mode != "cluster" && mode != "sentinel") {
    return raise("RuntimeError",
                 fmt::format("Failed to build RAGFS stack: configuration error: cache provider init failed: invalid "
                             "cache argument: unsupported Redis mode {}; expected standalone, cluster, or sentinel",
                             mode));
  }
  return {};
}

Answer<void> parse_pathlock(const Json& section, bool has_cache, Options& options) {
  if (!section.is_object()) return bad_value("pathlock config must be an object");
  constexpr std::array<std::string_view, 4> kKnown = {"provider", "lock_expire_secs", "lock_timeout_secs", "shared"};
  for (const auto& [key, unused] : section.items()) {
    if (std::ranges::find(kKnown, key) == kKnown.end()) {
      return bad_value(fmt::format("unsupported pathlock field: {}", key));
    }
  }
  std::string provider = "filesystem";
  if (!take(section, "provider", provider)) return bad_value("pathlock.provider must be a string");
  if (provider == "cache") {
    if (!has_cache) return bad_value("top-level cache config is required for cache-backed PathLock");
    // Who shares the cache's server relies on locks that others see.
    return bad_value("pathlock.provider cache is not supported by this build; use filesystem with \"shared\": true");
  }
  if (provider != "filesystem" && provider != "memory") {
    return bad_value(fmt::format("unsupported pathlock.provider: {}; expected filesystem, memory, or cache", provider));
  }
  const auto number = [&](const char* key, double& into) {
    const auto at = section.find(key);
    if (at == section.end() || at->is_null()) return true;
    if (!at->is_number()) return false;
    into = at->get<double>();
    return true;
  };
  if (!number("lock_expire_secs", options.lock_expire_secs)) {
    return bad_value("pathlock.lock_expire_secs must be a number");
  }
  if (!std::isfinite(options.lock_expire_secs) || options.lock_expire_secs < 1.0) {
    return bad_value("pathlock.lock_expire_secs must be finite and >= 1.0");
  }
  if (!number("lock_timeout_secs", options.lock_timeout_secs)) {
    return bad_value("pathlock.lock_timeout_secs must be a number");
  }
  if (!std::isfinite(options.lock_timeout_secs) || options.lock_timeout_secs < 0) {
    return bad_value("pathlock.lock_timeout_secs must be a finite non-negative number");
  }
  if (!take(section, "shared", options.locks_shared)) return bad_value("pathlock.shared must be a boolean");
  return {};
}

// Never plain bytes where a caller asked for encrypted ones.
std::unexpected<Raised> no_encryption() {
  return raise("RuntimeError", "encryption is not supported by this build: remove the section, or use the original");
}

Answer<void> parse_encryption(const Json& section) {
  if (!section.is_object() || !section.contains("root_key")) return bad_value("encryption.root_key required");
  const Json& key = section["root_key"];
  if (!key.is_binary() || key.get_binary().size() != kRootKeyBytes) return bad_value("root_key must be 32 bytes");
  if (!section.contains("provider_type") || !section["provider_type"].is_number_integer()) {
    return bad_value("encryption.provider_type required");
  }
  return no_encryption();
}

Answer<void> parse_git(const Json& section, Options& options) {
  if (!section.is_object()) return bad_value("git config must be an object");
  std::string backend = "local";
  bool enabled = false;
  if (!take(section, "backend", backend) || !take(section, "enabled", enabled)) {
    return raise("RuntimeError", "Invalid git config: a field has the wrong type");
  }
  if (backend != "local" && backend != "s3") return bad_value(fmt::format("unsupported git backend: {}", backend));
  if (enabled && !section.contains(backend)) return bad_value(fmt::format("[git.{}] missing", backend));
  options.git_backend = backend;
  return {};
}

// The sections of an ov.conf that `config` does not give.
Answer<void> parse_file(const std::string& path, const Json& config, Options& options) {
  const char* what = config.contains("pathlock") ? "cache" : "PathLock";
  const auto text = read_file(path);
  if (!text) {
    return raise("RuntimeError",
                 fmt::format("Invalid {} config: failed to read OpenViking config {}", what, text.error().message));
  }
  const Json file = Json::parse(*text, nullptr, false, true);
  if (!file.is_object()) {
    return raise("RuntimeError", fmt::format("Invalid {} config: failed to parse OpenViking config {}", what, path));
  }
  if (file.value("/encryption/enabled"_json_pointer, Json()) == Json(true)) return no_encryption();
  const Json agfs = file.value("/storage/agfs"_json_pointer, Json::object());
  if (agfs.contains("cache")) {
    return bad_cache(
        "storage.agfs.cache has been removed; use cache.provider/cache.params and "
        "storage.agfs.cachefs.backend=cache");
  }
  const bool has_cache = file.contains("cache") || config.contains("cache");
  if (!config.contains("pathlock") && agfs.contains("pathlock")) {
    if (auto parsed = parse_pathlock(agfs["pathlock"], has_cache, options); !parsed) return parsed;
  }
  if (config.contains("cache") || !file.contains("cache")) return {};
  Json section = agfs.value("cachefs", Json::object());
  section["enabled"] = section.value("backend", Json("")) == "cache";
  section.erase("backend");
  const std::string provider = file["cache"].value("provider", "redis");
  section["provider"] = provider;
  section[provider] = file["cache"].value("params", Json::object());
  return parse_cache(section, options);
}

// Our own file. What it says of the cache wins: it was written for this module.
Answer<void> parse_own_file(Options& options) {
  const char* path = ::getenv("RAGFS_CONFIG");
  if (path == nullptr || *path == '\0') return {};
  auto own = load_config(path, MountsNeeded::no);
  if (!own) return raise("RuntimeError", fmt::format("RAGFS_CONFIG: {}", own.error().message));
  own->cache.name_space = options.config.cache.name_space;
  options.config = std::move(*own);
  options.cache_on = options.config.cache.enabled;
  // Processes that write the same files need locks that the others see; OpenViking's models have no key for it.
  options.locks_shared = options.locks_shared || options.config.cache.shared;
  return {};
}

}  // namespace

Answer<Options> parse_options(const std::string& config_path, const Json& config, const std::string& git_config_path) {
  Options options;
  const bool given = config.is_object();
  if (given || !config_path.empty()) {
    if (!given || !config.contains("service_name")) return bad_value("service_name is required");
    const auto service_name = config["service_name"].get<std::string>();
    options.config.cache.name_space = service_name.empty() ? "openviking-server" : service_name;
  }
  const Json sections = given ? config : Json::object();
  if (!config_path.empty()) {
    if (auto parsed = parse_file(config_path, sections, options); !parsed) return std::unexpected(parsed.error());
  }
  if (!git_config_path.empty()) {
    const auto text = read_file(git_config_path);
    if (!text) return raise("RuntimeError", "read config_path " + text.error().message);
  }
  const bool has_cache = sections.contains("cache");
  Answer<void> parsed;
  if (has_cache) parsed = parse_cache(sections["cache"], options);
  if (parsed && sections.contains("pathlock")) parsed = parse_pathlock(sections["pathlock"], has_cache, options);
  if (parsed && sections.contains("encryption")) parsed = parse_encryption(sections["encryption"]);
  if (parsed && sections.contains("git")) parsed = parse_git(sections["git"], options);
  if (parsed) parsed = parse_own_file(options);
  if (!parsed) return std::unexpected(parsed.error());
  return options;
}

}  // namespace ragfs::python
