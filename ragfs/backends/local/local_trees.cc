// Names and directories of localfs: making, removing, moving and copying them.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/backends/local/dir_reader.h"
#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/local/local_status.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

constexpr mode_t kNewFileMode = 0666;  // cut by the process's umask
constexpr mode_t kNewDirMode = 0777;
constexpr int kRaceAttempts = 16;  // a directory that others fill or remove while we work on it

std::unexpected<Error> fail_errno(int negated_errno, PathView path) {
  return std::unexpected(error_from_errno(-negated_errno, path.text()));
}

std::unexpected<Error> fail_deadline(PathView path, std::string_view what) {
  return fail(ErrorCode::timeout, fmt::format("{}: the deadline passed during {}", path.text(), what));
}

bool not_there(ErrorCode code) { return code == ErrorCode::not_found || code == ErrorCode::not_a_directory; }

// What rename(2) says about an existing target, in the words of the interface.
std::unexpected<Error> fail_rename(int negated_errno, PathView from, PathView to) {
  switch (-negated_errno) {
    case EEXIST:
    case ENOTEMPTY: return fail(ErrorCode::directory_not_empty, std::string(to.text()), -negated_errno);
    case EISDIR: return fail(ErrorCode::is_a_directory, std::string(to.text()), EISDIR);
    case ENOTDIR: return fail(ErrorCode::not_a_directory, std::string(to.text()), ENOTDIR);
    case EINVAL:
      return fail(ErrorCode::invalid_operation,
                  fmt::format("{} cannot be moved into itself ({})", from.text(), to.text()), EINVAL);
    case EBUSY:
      return fail(ErrorCode::invalid_operation, fmt::format("{} or {} is a mount point", from.text(), to.text()),
                  EBUSY);
    default: return fail_errno(negated_errno, from);
  }
}

}  // namespace

Result<void> LocalFileSystem::fsync_dir(PathView path, int dir_fd) const {
  // The descriptors of look-ups are O_PATH, which cannot be synced.
  const OwnedFd dir(
      files_, retry_interrupted([&] { return files_.openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); }));
  if (!dir) return fail_errno(dir.get(), path);
  const int result = retry_interrupted([&] { return files_.fsync(dir.get()); });
  if (result < 0) return fail_errno(result, path);
  return {};
}

bool LocalFileSystem::clear_stale_temps(int dir_fd, const char* name) const {
  const OwnedFd dir(files_, retry_interrupted([&] {
                      return files_.openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
                    }));
  if (!dir) return false;
  bool cleared = false;
  DirReader reader(files_, dir.get());
  while (const char* const entry = reader.next()) {
    struct stat status = {};
    if (!TempNames::is_temp(entry) || files_.fstatat(dir.get(), entry, &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
    if (!temp_names_.is_stale(entry, to_ns(status.st_mtim), Clock::system().wall_ns(),
                              config_.stale_temp_age_ms * 1'000'000)) {
      continue;
    }
    cleared = files_.unlinkat(dir.get(), entry, 0) == 0 || cleared;
  }
  return cleared;
}

Result<void> LocalFileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t /*mode*/) {
  const PathView parent = path.parent();
  if (parent.is_root()) return {};
  if (TempNames::in_path(path)) {
    return fail(ErrorCode::invalid_path, fmt::format("{}: names of this form are temporary files", path.text()));
  }
  // From the deepest directory that exists downwards. Others may make or remove directories meanwhile.
  for (int attempt = 0; attempt < kRaceAttempts; ++attempt) {
    PathView at = parent;
    std::vector<PathView> missing;
    while (!at.is_root()) {
      auto found = paths_.open(ctx, at, O_PATH | O_DIRECTORY);
      if (found) break;
      if (found.error().code != ErrorCode::not_found) return std::unexpected(std::move(found.error()));
      missing.push_back(at);
      at = at.parent();
    }
    int result = 0;
    for (; !missing.empty() && result == 0; missing.pop_back()) {
      auto entry = paths_.open_parent(ctx, missing.back());
      if (!entry) {
        if (entry.error().code != ErrorCode::not_found) return std::unexpected(std::move(entry.error()));
        result = -ENOENT;
        break;
      }
      result = retry_interrupted([&] { return files_.mkdirat(entry->dir_fd, entry->name.c_str(), kNewDirMode); });
      // Made by somebody else meanwhile, or a file or a dangling link: the next round tells which.
      if (result < 0 && result != -EEXIST && result != -ENOENT) return fail_errno(result, missing.back());
    }
    if (result == 0) return {};
  }
  auto found = paths_.open(ctx, parent, O_PATH | O_DIRECTORY);
  if (!found && found.error().code == ErrorCode::not_found) {
    return fail(
        ErrorCode::io,
        fmt::format("{}: cannot be made a directory: a dangling symlink, or removed again and again", parent.text()));
  }
  if (!found) return std::unexpected(std::move(found.error()));
  return {};
}

Result<void> LocalFileSystem::remove(const Context& ctx, PathView path) {
  if (path.is_root()) {
    auto entries = read_dir({}, path);
    if (!entries) return std::unexpected(std::move(entries.error()));
    if (!entries->empty()) return fail(ErrorCode::directory_not_empty, "/", ENOTEMPTY);
    return fail(ErrorCode::invalid_operation, "the root cannot be removed");
  }
  auto entry = paths_.open_parent(ctx, path);
  if (!entry) {
    if (not_there(entry.error().code)) return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
    return std::unexpected(std::move(entry.error()));
  }
  const char* const name = entry->name.c_str();
  int result = retry_interrupted([&] { return files_.unlinkat(entry->dir_fd, name, 0); });
  if (result == -EISDIR) {
    const auto remove_dir = [&] { return files_.unlinkat(entry->dir_fd, name, AT_REMOVEDIR); };
    result = retry_interrupted(remove_dir);
    if ((result == -ENOTEMPTY || result == -EEXIST) && clear_stale_temps(entry->dir_fd, name)) {
      result = retry_interrupted(remove_dir);
    }
    if (result == -EEXIST) result = -ENOTEMPTY;
  }
  if (result == -ENOENT) return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
  if (result == -ENOTEMPTY) return fail(ErrorCode::directory_not_empty, std::string(path.text()), ENOTEMPTY);
  if (result < 0) return fail_errno(result, path);
  if (config_.sync_writes) return fsync_dir(path, entry->dir_fd);
  return {};
}

Result<void> LocalFileSystem::remove_all(const Context& ctx, PathView path) {
  if (path.is_root()) return remove_below(ctx, path);
  auto entry = paths_.open_parent(ctx, path);
  if (!entry) {
    if (not_there(entry.error().code)) return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
    return std::unexpected(std::move(entry.error()));
  }
  const char* const name = entry->name.c_str();
  for (int attempt = 0; attempt < kRaceAttempts; ++attempt) {
    int result = retry_interrupted([&] { return files_.unlinkat(entry->dir_fd, name, 0); });  // never through a link
    if (result == -EISDIR) {
      if (auto below = remove_below(ctx, path); !below && below.error().code != ErrorCode::not_found) return below;
      result = retry_interrupted([&] { return files_.unlinkat(entry->dir_fd, name, AT_REMOVEDIR); });
    }
    if (result == -ENOENT && attempt == 0) return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
    if (result == 0 || result == -ENOENT) return config_.sync_writes ? fsync_dir(path, entry->dir_fd) : Result<void>();
    if (result != -ENOTEMPTY && result != -EEXIST && result != -ENOTDIR) return fail_errno(result, path);
  }
  return fail(ErrorCode::directory_not_empty, fmt::format("{}: is filled again and again", path.text()), ENOTEMPTY);
}

// One directory at a time, opened by its path without links, so that neither the depth of the tree nor the size of a
// directory needs more than one descriptor, and a link put there meanwhile is not walked through.
Result<void> LocalFileSystem::remove_below(const Context& ctx, PathView path) {
  std::vector<Path> pending{Path(path)};  // each is emptied, then removed when it is met again
  while (!pending.empty()) {
    const Path dir_path = pending.back();
    std::vector<Path> subdirs;
    if (auto emptied = unlink_files(ctx, dir_path, subdirs); !emptied) {
      if (emptied.error().code != ErrorCode::not_found || pending.size() == 1) return emptied;
      pending.pop_back();  // removed by somebody else
      continue;
    }
    if (!subdirs.empty()) {
      pending.insert(pending.end(), std::make_move_iterator(subdirs.begin()), std::make_move_iterator(subdirs.end()));
      continue;
    }
    pending.pop_back();
    if (pending.empty()) return {};
    auto removed = remove(ctx, dir_path);
    if (removed || removed.error().code == ErrorCode::not_found) continue;
    if (removed.error().code != ErrorCode::directory_not_empty) return removed;
    pending.push_back(dir_path);  // filled meanwhile: once more
    if (ctx.deadline.expired()) return fail_deadline(dir_path, "a recursive removal");
  }
  return {};
}

Result<void> LocalFileSystem::unlink_files(const Context& ctx, PathView dir_path, std::vector<Path>& subdirs) {
  auto opened = paths_.open(ctx, dir_path, O_RDONLY | O_DIRECTORY);
  if (!opened) return std::unexpected(std::move(opened.error()));
  const int dir_fd = opened->fd.get();
  // Removing while reading may make a file system skip names, so it is read until a pass finds nothing to remove.
  for (bool again = true; again;) {
    again = false;
    DirReader reader(files_, dir_fd);
    while (const char* const name = reader.next()) {
      if (ctx.deadline.expired()) return fail_deadline(dir_path, "a recursive removal");
      const int result = retry_interrupted([&] { return files_.unlinkat(dir_fd, name, 0); });
      if (result == 0) again = true;
      if (result == 0 || result == -ENOENT) continue;
      auto child = Path::join(dir_path, name);
      if (!child) return std::unexpected(std::move(child.error()));
      if (result != -EISDIR) return fail_errno(result, *child);
      subdirs.push_back(std::move(*child));
    }
    if (reader.error() < 0) return fail_errno(reader.error(), dir_path);
    if (!again) return {};
    subdirs.clear();
    const int rewound = retry_interrupted([&] { return files_.rewind(dir_fd); });
    if (rewound < 0) return fail_errno(rewound, dir_path);
  }
  return {};
}

Result<void> LocalFileSystem::rename(const Context& ctx, PathView from, PathView to) {
  struct stat source = {};
  NamedEntry old_entry;
  if (!from.is_root()) {
    auto entry = find_name(ctx, from, source);
    if (!entry) return std::unexpected(std::move(entry.error()));
    old_entry = std::move(*entry);
  }
  if (from == to) return {};
  if (from.is_root() || (S_ISDIR(source.st_mode) && to.is_within(from))) {
    return fail(ErrorCode::invalid_operation,
                fmt::format("{} cannot be moved into itself ({})", from.text(), to.text()));
  }
  if (from.is_within(to)) return fail(ErrorCode::directory_not_empty, std::string(to.text()), ENOTEMPTY);
  auto new_entry = paths_.open_parent(ctx, to);
  if (!new_entry) return std::unexpected(std::move(new_entry.error()));
  return rename_entry(from, old_entry, source, to, *new_entry);
}

Result<NamedEntry> LocalFileSystem::find_name(const Context& ctx, PathView path, struct stat& status) const {
  auto entry = paths_.open_parent(ctx, path);
  if (!entry) {
    if (not_there(entry.error().code)) return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
    return entry;
  }
  const int found = retry_interrupted(
      [&] { return files_.fstatat(entry->dir_fd, entry->name.c_str(), &status, AT_SYMLINK_NOFOLLOW); });
  if (found < 0) return std::unexpected(paths_.lookup_error(found, path));
  return entry;
}

Result<void> LocalFileSystem::rename_entry(PathView from, const NamedEntry& old_entry, const struct stat& source,
                                           PathView to, const NamedEntry& new_entry) {
  const char* const old_name = old_entry.name.c_str();
  const char* const new_name = new_entry.name.c_str();
  struct stat target = {};
  if (source.st_nlink > 1 && !S_ISDIR(source.st_mode) &&
      files_.fstatat(new_entry.dir_fd, new_name, &target, AT_SYMLINK_NOFOLLOW) == 0 && target.st_ino == source.st_ino &&
      target.st_dev == source.st_dev) {
    // Two names of one file: rename(2) would succeed and leave both.
    const int result = retry_interrupted([&] { return files_.unlinkat(old_entry.dir_fd, old_name, 0); });
    return result < 0 ? Result<void>(fail_errno(result, from)) : Result<void>();
  }
  const auto move = [&] { return files_.renameat2(old_entry.dir_fd, old_name, new_entry.dir_fd, new_name, 0); };
  int result = retry_interrupted(move);
  if ((result == -ENOTEMPTY || result == -EEXIST) && clear_stale_temps(new_entry.dir_fd, new_name)) {
    result = retry_interrupted(move);
  }
  if (result < 0) return fail_rename(result, from, to);
  if (!config_.sync_writes) return {};
  if (auto synced = fsync_dir(to, new_entry.dir_fd); !synced) return synced;
  return fsync_dir(from, old_entry.dir_fd);
}

Result<void> LocalFileSystem::replace(const Context& ctx, PathView from, PathView to) {
  if (from.is_root()) return fail(ErrorCode::invalid_operation, "/ is a directory; replace moves files");
  struct stat source = {};
  auto old_entry = find_name(ctx, from, source);
  if (!old_entry) return std::unexpected(std::move(old_entry.error()));
  if (S_ISDIR(source.st_mode)) {
    return fail(ErrorCode::invalid_operation, fmt::format("{} is a directory; replace moves files", from.text()));
  }
  if (from == to) return {};
  if (from.is_within(to)) return fail(ErrorCode::is_a_directory, std::string(to.text()), EISDIR);
  auto new_entry = paths_.open_parent(ctx, to);
  if (!new_entry) return std::unexpected(std::move(new_entry.error()));
  return rename_entry(from, *old_entry, source, to, *new_entry);
}

int LocalFileSystem::copy_bytes(int from, int to, uint64_t size) const {
  constexpr size_t kChunkBytes = 1UL << 30;
  constexpr size_t kBufferBytes = size_t{256} << 10;
  off_t offset = 0;
  std::string buffer;  // only where the kernel cannot copy between these two
  while (static_cast<uint64_t>(offset) < size) {
    const uint64_t rest = size - static_cast<uint64_t>(offset);
    if (buffer.empty()) {
      const ssize_t copied = files_.copy_file_range(from, &offset, to, std::min<uint64_t>(rest, kChunkBytes));
      if (copied > 0 || copied == -EINTR) continue;
      if (copied == 0) return -ENODATA;
      const bool unable = copied == -EXDEV || copied == -EINVAL || copied == -ENOSYS || copied == -EOPNOTSUPP;
      if (!unable) return static_cast<int>(copied);
      buffer.resize(std::min<uint64_t>(rest, kBufferBytes));
    }
    const ssize_t got = pread_fully(files_, from, buffer.data(), std::min<uint64_t>(rest, buffer.size()), offset);
    if (got < 0) return static_cast<int>(got);
    if (got == 0) return -ENODATA;
    const WriteProgress wrote = write_fully(files_, to, std::string_view(buffer.data(), static_cast<size_t>(got)));
    if (wrote.error != 0) return wrote.error;
    offset += got;
  }
  return 0;
}

Result<WriteResult> LocalFileSystem::copy(const Context& ctx, PathView from, PathView to) {
  auto source = open_file(ctx, from, O_RDONLY);
  if (!source) return std::unexpected(std::move(source.error()));
  if (from == to) {
    return WriteResult{.bytes = static_cast<uint64_t>(source->status.st_size),
                       .meta = meta_of(source->status, source->via_symlink)};
  }
  if (ctx.deadline.expired()) return fail_deadline(from, "a copy");
  if (auto parents = ensure_parent_dirs(ctx, to, kDefaultDirMode); !parents) {
    return std::unexpected(std::move(parents.error()));
  }
  auto target = paths_.find_target(ctx, to);
  if (!target) return std::unexpected(std::move(target.error()));
  if (target->exists) {
    if (auto allowed = check_writable(to, *target); !allowed) return std::unexpected(std::move(allowed.error()));
  }
  for (int attempt = 0; attempt < config_.snapshot_attempts; ++attempt) {
    if (ctx.deadline.expired()) return fail_deadline(from, "a copy");
    TempFile temp(files_, temp_names_, target->entry.dir_fd, kNewFileMode);
    if (temp.fd() < 0) return fail_errno(temp.fd(), to);
    const auto size = static_cast<uint64_t>(source->status.st_size);
    const int copied = copy_bytes(source->fd.get(), temp.fd(), size);
    if (copied < 0 && copied != -ENODATA) return fail_errno(copied, to);
    RAGFS_PAUSE_POINT("localfs.copied");
    struct stat after = {};
    const int result = retry_interrupted([&] { return files_.fstat(source->fd.get(), &after); });
    if (result < 0) return fail_errno(result, from);
    if (copied == 0 && same_state(source->status, after)) return publish(to, *target, temp, size, false);
    source->status = after;
  }
  return fail(ErrorCode::io, fmt::format("{}: the file changed during each of {} copies; another program writes it",
                                         from.text(), config_.snapshot_attempts));
}

}  // namespace ragfs
