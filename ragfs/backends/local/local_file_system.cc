// Opening localfs, and its reads.
#include "ragfs/backends/local/local_file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <new>

#include "ragfs/backends/local/dir_reader.h"
#include "ragfs/backends/local/local_status.h"
#include "ragfs/fs/grep.h"

namespace ragfs {
namespace {

// Device and inode name the directory; its time of birth tells a directory that was removed and made again, or another
// disk that got the device's number, from the one before.
Result<std::string> identity_of(PosixFiles& files, int root_fd, const std::string& root_dir) {
  struct statx status = {};
  const int result = files.statx(root_fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status);
  if (result < 0) return std::unexpected(error_from_errno(-result, root_dir));
  int64_t birth_ns = 0;
  if ((status.stx_mask & STATX_BTIME) != 0)
    birth_ns = status.stx_btime.tv_sec * 1'000'000'000LL + status.stx_btime.tv_nsec;
  return fmt::format("local:{}:{}:{}", makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino, birth_ns);
}

}  // namespace

Result<void> LocalConfig::validate() const {
  if (root_dir.empty()) return fail(ErrorCode::config, "local_dir is required in configuration");
  if (stale_temp_age_ms < 60'000) {
    return fail(ErrorCode::config,
                fmt::format("localfs stale_temp_age_ms is {}; it must be at least 60000", stale_temp_age_ms));
  }
  if (snapshot_attempts < 1 || snapshot_attempts > 1000) {
    return fail(ErrorCode::config,
                fmt::format("localfs snapshot_attempts is {}; it must be 1 to 1000", snapshot_attempts));
  }
  return {};
}

Result<std::unique_ptr<LocalFileSystem>> LocalFileSystem::open(const LocalConfig& config, PosixFiles& files) {
  if (auto valid = config.validate(); !valid) return std::unexpected(std::move(valid.error()));
  auto paths = LocalPaths::open(files, config.root_dir);
  if (!paths) return std::unexpected(std::move(paths.error()));
  auto identity = identity_of(files, paths->root_fd(), config.root_dir);
  if (!identity) return std::unexpected(std::move(identity.error()));
  FileSystemTraits traits;
  traits.type = "localfs";
  traits.identity = std::move(*identity);
  traits.listings_prove_absence = true;
  traits.directory_times = true;
  traits.greps_as_rg = true;
  return std::unique_ptr<LocalFileSystem>(new LocalFileSystem(config, files, std::move(*paths), std::move(traits)));
}

LocalFileSystem::LocalFileSystem(const LocalConfig& config, PosixFiles& files, LocalPaths paths,
                                 FileSystemTraits traits)
    : config_(config), files_(files), paths_(std::move(paths)), traits_(std::move(traits)) {}

Result<LocalFileSystem::Looked> LocalFileSystem::look(const Context& ctx, PathView path) const {
  Looked looked;
  // A name in the root needs no descriptor, because only the name itself can be a link.
  if (path.depth() <= 1 && !TempNames::in_path(path)) {
    const RelativePath relative(path);
    const int result = retry_interrupted(
        [&] { return files_.fstatat(paths_.root_fd(), relative.c_str(), &looked.status, AT_SYMLINK_NOFOLLOW); });
    if (result < 0) return std::unexpected(paths_.lookup_error(result, path));
    if (!S_ISLNK(looked.status.st_mode)) return looked;
  }
  auto opened = paths_.open(ctx, path, O_PATH);
  if (!opened) return std::unexpected(std::move(opened.error()));
  looked.via_symlink = opened->via_symlink;
  const int result = retry_interrupted([&] { return files_.fstat(opened->fd.get(), &looked.status); });
  if (result < 0) return std::unexpected(paths_.lookup_error(result, path));
  return looked;
}

Result<LocalFileSystem::OpenFile> LocalFileSystem::open_file(const Context& ctx, PathView path, int flags) const {
  auto opened = paths_.open(ctx, path, flags);
  if (!opened) return std::unexpected(std::move(opened.error()));
  OpenFile file{.fd = std::move(opened->fd), .status = {}, .via_symlink = opened->via_symlink};
  const int result = retry_interrupted([&] { return files_.fstat(file.fd.get(), &file.status); });
  if (result < 0) return std::unexpected(error_from_errno(-result, path.text()));
  if (S_ISDIR(file.status.st_mode)) return fail(ErrorCode::is_a_directory, std::string(path.text()), EISDIR);
  if (!S_ISREG(file.status.st_mode)) {
    return fail(ErrorCode::invalid_operation, fmt::format("{}: not a regular file", path.text()));
  }
  return file;
}

Result<Bytes> LocalFileSystem::read_range(PathView path, int fd, uint64_t offset, uint64_t size) const try {
  ByteBuffer buffer(size);
  const ssize_t got = pread_fully(files_, fd, buffer.data(), size, static_cast<off_t>(offset));
  if (got < 0) return std::unexpected(error_from_errno(static_cast<int>(-got), path.text()));
  return std::move(buffer).take(static_cast<size_t>(got));
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::too_large, fmt::format("{}: no memory for {} bytes; read it in ranges", path.text(), size));
}

Result<Bytes> LocalFileSystem::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  auto file = open_file(ctx, path, O_RDONLY);
  if (!file) return std::unexpected(std::move(file.error()));
  const auto file_size = static_cast<uint64_t>(file->status.st_size);
  if (offset >= file_size) return Bytes();
  const uint64_t rest = file_size - offset;
  return read_range(path, file->fd.get(), offset, size == 0 ? rest : std::min(size, rest));
}

Result<FileContent> LocalFileSystem::read_file(const Context& ctx, PathView path) {
  auto file = open_file(ctx, path, O_RDONLY);
  if (!file) return std::unexpected(std::move(file.error()));
  for (int attempt = 0; attempt < config_.snapshot_attempts; ++attempt) {
    auto data = read_range(path, file->fd.get(), 0, static_cast<uint64_t>(file->status.st_size));
    if (!data) return std::unexpected(std::move(data.error()));
    struct stat after = {};
    const int result = retry_interrupted([&] { return files_.fstat(file->fd.get(), &after); });
    if (result < 0) return std::unexpected(error_from_errno(-result, path.text()));
    if (static_cast<off_t>(data->size()) == file->status.st_size && same_state(file->status, after)) {
      return FileContent{.data = std::move(*data), .meta = meta_of(after, file->via_symlink)};
    }
    file->status = after;
  }
  return fail(ErrorCode::io, fmt::format("{}: the file changed during each of {} reads; another program writes it",
                                         path.text(), config_.snapshot_attempts));
}

Result<FileInfo> LocalFileSystem::stat(const Context& ctx, PathView path) {
  auto looked = look(ctx, path);
  if (!looked) return std::unexpected(std::move(looked.error()));
  // It is held open and looks empty then; nothing can be made in it any more.
  if (path.is_root() && looked->status.st_nlink == 0) {
    return fail(ErrorCode::io, "the directory that is shown here was removed", ENOENT);
  }
  return info_of(path.is_root() ? std::string_view("/") : path.name(), looked->status);
}

Result<bool> LocalFileSystem::exists(const Context& ctx, PathView path) {
  auto looked = look(ctx, path);
  if (looked) return true;
  if (looked.error().code == ErrorCode::not_found) return false;
  return std::unexpected(std::move(looked.error()));
}

Result<std::string> LocalFileSystem::version(const Context& ctx, PathView path) {
  auto looked = look(ctx, path);
  if (!looked) return std::unexpected(std::move(looked.error()));
  if (S_ISDIR(looked->status.st_mode)) return fail(ErrorCode::is_a_directory, std::string(path.text()), EISDIR);
  return version_of(looked->status);
}

Result<Path> LocalFileSystem::resolve(const Context& ctx, PathView path) { return paths_.real_path(ctx, path); }

Result<std::vector<FileInfo>> LocalFileSystem::read_dir(const Context& ctx, PathView path) {
  auto opened = paths_.open(ctx, path, O_RDONLY | O_DIRECTORY);
  if (!opened) return std::unexpected(std::move(opened.error()));
  const int dir_fd = opened->fd.get();
  std::vector<FileInfo> entries;
  DirReader reader(files_, dir_fd);
  bool any_temps = false;
  while (const char* const name = reader.next()) {
    if (TempNames::is_temp(name)) {
      any_temps = true;
      continue;
    }
    struct stat status = {};
    const int result = retry_interrupted([&] { return files_.fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW); });
    if (result == -ENOENT) continue;  // removed since the directory was read
    if (result < 0) return std::unexpected(error_from_errno(-result, fmt::format("{}: {}", path.text(), name)));
    entries.push_back(info_of(name, status));
  }
  if (reader.error() < 0) return std::unexpected(error_from_errno(-reader.error(), path.text()));
  if (any_temps) clear_stale_temps(dir_fd, ".");
  return entries;
}

Result<void> LocalFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                   const GrepSink& sink) {
  GrepSource source;
  source.directories.list = [&](PathView dir) { return read_dir(ctx, dir); };
  source.stat = [&](PathView file) { return stat(ctx, file); };
  source.read = [&](PathView file, uint64_t offset, uint64_t size) { return read(ctx, file, offset, size); };
  return walk_grep(ctx, path, options, GrepStyle::local(), source, sink);
}

}  // namespace ragfs
