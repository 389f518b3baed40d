#include "python/plugins.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/backends/queue/queue_file_system.h"
#include "ragfs/backends/serverinfo/server_info_file_system.h"

namespace ragfs::python {
namespace {

using Json = nlohmann::json;
using Opened = Result<std::shared_ptr<FileSystem>>;

template <typename FileSystemType>
Opened shared(Result<std::unique_ptr<FileSystemType>> opened) {
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::shared_ptr<FileSystem>(std::move(*opened));
}

Opened open_local(const Json& parameters) {
  const auto dir = parameters.find("local_dir");
  if (dir == parameters.end() || !dir->is_string()) {
    return fail(ErrorCode::plugin, "local_dir is required in configuration");
  }
  LocalConfig config;
  config.root_dir = dir->get<std::string>();
  return shared(LocalFileSystem::open(config));
}

Opened open_mem(const Json& /*parameters*/) { return shared(MemFileSystem::open(MemConfig())); }

Opened open_server_info(const Json& /*parameters*/) {
  return std::shared_ptr<FileSystem>(std::make_shared<ServerInfoFileSystem>(RAGFS_VERSION));
}

Result<int64_t> integer(const Json& parameters, const char* key, int64_t otherwise) {
  const auto at = parameters.find(key);
  if (at == parameters.end()) return otherwise;
  if (at->is_number_integer()) return at->get<int64_t>();
  return fail(ErrorCode::config, fmt::format("{} must be an integer", key));
}

Opened open_queue(const Json& parameters) {
  const std::string backend = parameters.contains("backend") && parameters["backend"].is_string()
                                  ? parameters["backend"].get<std::string>()
                                  : "memory";
  QueueConfig config;
  const auto recover = integer(parameters, "recover_stale_sec", config.recover_stale_secs);
  if (!recover) return std::unexpected(recover.error());
  config.recover_stale_secs = *recover;
  const auto busy = integer(parameters, "busy_timeout_ms", config.busy_timeout_ms);
  if (!busy) return std::unexpected(busy.error());
  config.busy_timeout_ms = *busy;
  if (backend == "cache") {
    return fail(ErrorCode::config, "queuefs backend=cache requires a configured CacheRuntime provider");
  }
  if (backend == "sqlite" || backend == "sqlite3") {
    config.db_path = parameters.value("db_path", "");
    if (config.db_path.empty()) {
      return fail(ErrorCode::config, "queuefs db_path is required when backend=sqlite or backend=sqlite3");
    }
  } else if (backend != "memory") {
    return fail(ErrorCode::config,
                fmt::format("unsupported queue backend: {} (valid: memory, sqlite, sqlite3, cache)", backend));
  }
  return shared(QueueFileSystem::open(config));
}

Opened open_s3(const Json& parameters) {
  if (!parameters.contains("bucket")) return fail(ErrorCode::config, "'bucket' is required for S3FS");
  return fail(ErrorCode::config, "s3fs is not in this build");
}

struct Plugin {
  const char* name;
  Opened (*open)(const Json&);
};
constexpr std::array kPlugins = {Plugin{"localfs", open_local}, Plugin{"memfs", open_mem},
                                 Plugin{"queuefs", open_queue}, Plugin{"serverinfofs", open_server_info},
                                 Plugin{"s3fs", open_s3}};

std::string_view kind_of(const Json& value) {
  if (value.is_boolean()) return "bool";
  if (value.is_number()) return "integer";
  return "string";
}

}  // namespace

Result<std::shared_ptr<FileSystem>> open_plugin(const std::string& type, const Json& parameters) {
  if (parameters.contains("backups") && !parameters["backups"].is_structured()) {
    return fail(ErrorCode::config,
                fmt::format("'backups' must be a JSON object/array, got {}", kind_of(parameters["backups"])));
  }
  if (parameters.contains("backups")) return fail(ErrorCode::config, "mounts with backups are not in this build");
  for (const char* flag : {"server_encryption_enabled", "primary_encryption_enabled"}) {
    if (parameters.contains(flag) && !parameters[flag].is_boolean()) {
      return fail(ErrorCode::config, fmt::format("'{}' must be a boolean, got {}", flag, kind_of(parameters[flag])));
    }
    if (parameters.value(flag, false)) {
      return fail(ErrorCode::config, fmt::format("'{}': encryption is not supported by this build", flag));
    }
  }
  for (const Plugin& plugin : kPlugins) {
    if (type == plugin.name) return plugin.open(parameters);
  }
  return fail(ErrorCode::plugin, fmt::format("Plugin '{}' not registered", type));
}

}  // namespace ragfs::python
