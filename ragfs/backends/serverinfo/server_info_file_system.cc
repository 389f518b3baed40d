#include "ragfs/backends/serverinfo/server_info_file_system.h"

#include <fmt/format.h>
#include <time.h>

#include <array>
#include <utility>

#include "ragfs/base/clock.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerSec = 1'000'000'000;
constexpr uint32_t kFileMode = 0444;
constexpr uint32_t kDirMode = 0555;
constexpr std::array<std::string_view, 5> kNames = {"README", "server_info", "stats", "uptime", "version"};

constexpr const char* kReadme =
    "ServerInfoFS: what runs here, as files.\n\n"
    "  /server_info  everything, as JSON\n"
    "  /uptime       how long it has been running\n"
    "  /version      its version\n"
    "  /stats        figures of this run, as JSON\n"
    "  /README       this text\n";

std::unexpected<Error> read_only() {
  return fail(ErrorCode::plugin, "operation not permitted: serverinfofs is read-only");
}

std::string uptime_text(int64_t secs) {
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  if (secs < kMinute) return fmt::format("{}s", secs);
  if (secs < kHour) return fmt::format("{}m{}s", secs / kMinute, secs % kMinute);
  return fmt::format("{}h{}m{}s", secs / kHour, secs % kHour / kMinute, secs % kMinute);
}

std::string time_text(int64_t wall_ns) {
  const time_t secs = wall_ns / kNsPerSec;
  struct tm parts{};
  gmtime_r(&secs, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

ServerInfoFileSystem::ServerInfoFileSystem(std::string version)
    : traits_{.type = "serverinfofs", .control = true},
      version_(std::move(version)),
      started_wall_ns_(Clock::system().wall_ns()),
      started_ns_(Clock::system().monotonic_ns()) {}

Result<std::string> ServerInfoFileSystem::content(PathView path) const {
  const int64_t secs = (Clock::system().monotonic_ns() - started_ns_) / kNsPerSec;
  const std::string_view name = path.depth() == 1 ? path.name() : std::string_view{};
  if (name == "README") return std::string(kReadme);
  if (name == "version") return version_ + "\n";
  if (name == "uptime") return uptime_text(secs) + "\n";
  if (name == "stats") {
    return fmt::format("{{\n  \"uptime_seconds\": {},\n  \"uptime\": \"{}\"\n}}\n", secs, uptime_text(secs));
  }
  if (name == "server_info") {
    return fmt::format("{{\n  \"version\": \"{}\",\n  \"uptime\": \"{}\",\n  \"start_time\": \"{}\"\n}}\n", version_,
                       uptime_text(secs), time_text(started_wall_ns_));
  }
  return fail(ErrorCode::not_found, std::string(path.text()));
}

Result<Bytes> ServerInfoFileSystem::read(const Context& /*ctx*/, PathView path, uint64_t offset, uint64_t size) {
  if (path.is_root()) return fail(ErrorCode::is_a_directory, "/");
  auto text = content(path);
  if (!text) return std::unexpected(std::move(text.error()));
  return Bytes::from_string(std::move(*text)).slice(offset, size == 0 ? SIZE_MAX : size);
}

Result<FileContent> ServerInfoFileSystem::read_file(const Context& ctx, PathView path) {
  auto data = read(ctx, path, 0, 0);
  if (!data) return std::unexpected(std::move(data.error()));
  FileMeta meta;
  meta.size = data->size();
  meta.mode = kFileMode;
  meta.mtime_ns = Clock::system().wall_ns();
  meta.cacheable = false;
  return FileContent{std::move(*data), std::move(meta)};
}

Result<FileInfo> ServerInfoFileSystem::stat(const Context& /*ctx*/, PathView path) {
  const int64_t now_ns = Clock::system().wall_ns();
  if (path.is_root()) return FileInfo{.name = "/", .mode = kDirMode, .mtime_ns = now_ns, .kind = FileKind::directory};
  const auto text = content(path);
  if (!text) return std::unexpected(text.error());
  return FileInfo{.name = std::string(path.name()), .size = text->size(), .mode = kFileMode, .mtime_ns = now_ns};
}

Result<std::vector<FileInfo>> ServerInfoFileSystem::read_dir(const Context& ctx, PathView path) {
  if (!path.is_root()) return fail(ErrorCode::not_a_directory, std::string(path.text()));
  std::vector<FileInfo> entries;
  for (const std::string_view name : kNames) {
    auto child = Path::join(path, name);
    if (!child) return std::unexpected(std::move(child.error()));
    auto info = stat(ctx, *child);
    if (!info) return std::unexpected(std::move(info.error()));
    entries.push_back(std::move(*info));
  }
  return entries;
}

Result<void> ServerInfoFileSystem::create(const Context& /*ctx*/, PathView /*path*/) { return read_only(); }
Result<void> ServerInfoFileSystem::mkdir(const Context& /*ctx*/, PathView /*path*/, uint32_t /*mode*/) {
  return read_only();
}
Result<void> ServerInfoFileSystem::remove(const Context& /*ctx*/, PathView /*path*/) { return read_only(); }
Result<void> ServerInfoFileSystem::remove_all(const Context& /*ctx*/, PathView /*path*/) { return read_only(); }
Result<WriteResult> ServerInfoFileSystem::write(const Context& /*ctx*/, PathView /*path*/, std::string_view /*data*/,
                                                uint64_t /*offset*/, WriteFlag /*flag*/) {
  return read_only();
}
Result<void> ServerInfoFileSystem::truncate(const Context& /*ctx*/, PathView /*path*/, uint64_t /*size*/) {
  return read_only();
}
Result<void> ServerInfoFileSystem::touch(const Context& /*ctx*/, PathView /*path*/) { return read_only(); }
Result<void> ServerInfoFileSystem::chmod(const Context& /*ctx*/, PathView /*path*/, uint32_t /*mode*/) {
  return read_only();
}
Result<void> ServerInfoFileSystem::rename(const Context& /*ctx*/, PathView /*from*/, PathView /*to*/) {
  return read_only();
}

}  // namespace ragfs
