#include "ragfs/cache/lives/state_dir.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

namespace ragfs {
namespace {

constexpr mode_t kDirMode = 0700;

// With links resolved as far as the path exists, and no trailing slash.
std::filesystem::path real_path(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) real = std::filesystem::path(path).lexically_normal();
  return real.has_filename() ? real : real.parent_path();
}

}  // namespace

StateDir::StateDir(std::string path, PosixFiles& files) : path_(std::move(path)), files_(files) {}

std::string StateDir::default_path(std::string_view name) {
  const char* const state_home = std::getenv("XDG_STATE_HOME");
  if (state_home != nullptr && state_home[0] == '/') return fmt::format("{}/ragfs/{}", state_home, name);
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fmt::format("{}/.local/state/ragfs/{}", home, name);
  return {};
}

Result<void> StateDir::check_outside(const std::vector<std::string>& served) const {
  if (!configured()) return {};
  const std::filesystem::path own = real_path(path_);
  for (const std::string& directory : served) {
    const std::filesystem::path outer = real_path(directory);
    const auto [in_outer, in_own] = std::mismatch(outer.begin(), outer.end(), own.begin(), own.end());
    if (in_outer != outer.end()) continue;
    return fail(ErrorCode::config,
                fmt::format("state_dir: {} lies in {}, which is served; choose another directory", path_, directory));
  }
  return {};
}

Result<bool> StateDir::exists() const {
  if (!configured()) return false;
  const Result<OwnedFd> opened = open();
  if (opened) return true;
  if (opened.error().code == ErrorCode::not_found) return false;
  return std::unexpected(opened.error());
}

Result<void> StateDir::make() const {
  if (!configured()) return fail(ErrorCode::config, "there is no state directory: neither state_dir nor HOME is set");
  for (size_t end = path_.find('/', 1);; end = path_.find('/', end + 1)) {
    const std::string part = path_.substr(0, end);
    const int made = files_.mkdirat(AT_FDCWD, part.c_str(), kDirMode);
    if (end != std::string::npos) continue;  // of a parent, what is wrong shows at the last one
    if (made < 0 && made != -EEXIST) return std::unexpected(error_from_errno(-made, path_));
    return {};
  }
}

Result<OwnedFd> StateDir::open() const {
  if (!configured()) return fail(ErrorCode::not_found, "no state directory");
  OwnedFd fd(files_, retry_interrupted([&] {
               return files_.openat(AT_FDCWD, path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
             }));
  if (!fd) return std::unexpected(error_from_errno(-fd.get(), path_));
  return fd;
}

}  // namespace ragfs
