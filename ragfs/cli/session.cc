#include "ragfs/cli/session.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ragfs/config/loader.h"
#include "ragfs/config/section_parser.h"

namespace ragfs::cli {
namespace {
constexpr const char* kDefaultFile = "ragfs.yaml";
constexpr int64_t kCloseTimeout_ms = 5'000;
}  // namespace

Session::~Session() {
  if (instance_ == nullptr) return;
  const auto closed = instance_->close(Deadline::in_ms(kCloseTimeout_ms));
  if (!closed) console_.warn("close", closed.error().text());
}

std::string Session::file() const {
  if (!options_.config_file.empty()) return options_.config_file;
  const char* from_environment = std::getenv("RAGFS_CONFIG");
  if (from_environment != nullptr && *from_environment != '\0') return from_environment;
  return ::access(kDefaultFile, F_OK) == 0 ? kDefaultFile : "";
}

std::string Session::source() const { return options_.root.empty() ? file() : options_.root; }

std::string Session::command_start() const {
  // Quoted for a shell when it needs to be.
  const std::string name = source();
  const bool plain = name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") ==
                     std::string::npos;
  std::string quoted = name;
  if (!plain) {
    quoted = "'";
    for (const char c : name) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    quoted += '\'';
  }
  return program_ + (options_.root.empty() ? " --config " : " --root ") + quoted;
}

Result<Config> Session::load() const {
  if (!options_.root.empty()) {
    Config config = Config::for_root(resolve_host_path(options_.root, "./here"));
    struct stat info{};
    if (::stat(config.mounts[0].local_dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      const int error = S_ISDIR(info.st_mode) || info.st_mode == 0 ? errno : ENOTDIR;
      return fail(ErrorCode::invalid_argument, fmt::format("--root {}: {}", options_.root, std::strerror(error)),
                  error);
    }
    return config;
  }
  const std::string name = file();
  if (name.empty()) {
    return fail(ErrorCode::invalid_argument,
                "which tree? Say --root DIR to show a directory, or --config FILE (or set RAGFS_CONFIG, or keep a "
                "ragfs.yaml here)");
  }
  return load_config(name);
}

Result<Instance*> Session::instance() {
  if (instance_ != nullptr) return instance_.get();
  auto config = load();
  if (!config) return std::unexpected(config.error());
  auto opened = Instance::open(*config);
  if (!opened) return std::unexpected(opened.error());
  instance_ = std::move(*opened);
  return instance_.get();
}

Context Session::context() const {
  Context context;
  if (options_.timeout_s > 0) context.deadline = Deadline::in_ms(std::llround(options_.timeout_s * 1000));
  context.bypass_cache = options_.bypass_cache;
  return context;
}

}  // namespace ragfs::cli
