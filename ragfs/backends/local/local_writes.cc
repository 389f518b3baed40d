// Writes of localfs to one file.
#include <fmt/format.h>
#include <unistd.h>

#include <limits>
#include <optional>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/backends/local/local_status.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

constexpr auto kMaxOffset = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
constexpr mode_t kModeBits = 07777;
constexpr mode_t kNewFileMode = 0666;  // cut by the process's umask
constexpr mode_t kNewDirMode = 0777;

// The kernel stamps files with a clock that stands still for milliseconds, so that two contents could carry one
// version; a time of our own has nanoseconds.
int stamp_now(PosixFiles& files, int fd) {
  const int64_t now_ns = Clock::system().wall_ns();
  const struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                    {.tv_sec = now_ns / 1'000'000'000, .tv_nsec = now_ns % 1'000'000'000}};
  return retry_interrupted([&] { return files.futimens(fd, times); });
}

std::unexpected<Error> fail_errno(int negated_errno, PathView path) {
  return std::unexpected(error_from_errno(-negated_errno, path.text()));
}

}  // namespace

Result<void> LocalFileSystem::create(const Context& ctx, PathView path) {
  if (path.is_root()) return fail(ErrorCode::already_exists, "/");
  auto entry = paths_.open_parent(ctx, path);
  if (!entry) return std::unexpected(std::move(entry.error()));
  const OwnedFd made(files_, retry_interrupted([&] {
                       return files_.openat(entry->dir_fd, entry->name.c_str(),
                                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kNewFileMode);
                     }));
  if (!made) return fail_errno(made.get(), path);
  if (config_.sync_writes) return fsync_dir(path, entry->dir_fd);
  return {};
}

Result<void> LocalFileSystem::mkdir(const Context& ctx, PathView path, uint32_t /*mode*/) {
  if (path.is_root()) return fail(ErrorCode::already_exists, "/");
  auto entry = paths_.open_parent(ctx, path);
  if (!entry) return std::unexpected(std::move(entry.error()));
  const int made = retry_interrupted([&] { return files_.mkdirat(entry->dir_fd, entry->name.c_str(), kNewDirMode); });
  if (made < 0) return fail_errno(made, path);
  if (config_.sync_writes) return fsync_dir(path, entry->dir_fd);
  return {};
}

Result<WriteResult> LocalFileSystem::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                           WriteFlag flag) {
  if (flag == WriteFlag::none || flag == WriteFlag::append) return write_in_place(ctx, path, data, offset, flag);
  if (offset != 0) {
    return fail(ErrorCode::invalid_operation,
                fmt::format("{}: offset {} with a whole-file write", path.text(), offset));
  }
  return write_whole(ctx, path, data, flag);
}

Result<void> LocalFileSystem::check_writable(PathView path, const Target& target) const {
  if (S_ISDIR(target.status.st_mode)) return fail(ErrorCode::is_a_directory, std::string(path.text()), EISDIR);
  if (!S_ISREG(target.status.st_mode)) {
    return fail(ErrorCode::invalid_operation, fmt::format("{}: not a regular file", path.text()));
  }
  if (::geteuid() == 0) return {};
  // The rename would need the directory's permission only; a file that was made read-only is not to be replaced.
  const int result = retry_interrupted(
      [&] { return files_.faccessat(target.entry.dir_fd, target.entry.name.c_str(), W_OK, AT_EACCESS); });
  if (result < 0 && result != -ENOENT) return fail_errno(result, path);
  return {};
}

Result<WriteResult> LocalFileSystem::write_whole(const Context& ctx, PathView path, std::string_view data,
                                                 WriteFlag flag) {
  const bool exclusive = flag == WriteFlag::create_new;
  if (exclusive) {
    if (path.is_root()) return fail(ErrorCode::already_exists, "/");
    auto entry = paths_.open_parent(ctx, path);
    if (!entry) return std::unexpected(std::move(entry.error()));
    struct stat status = {};
    const int found = retry_interrupted(
        [&] { return files_.fstatat(entry->dir_fd, entry->name.c_str(), &status, AT_SYMLINK_NOFOLLOW); });
    if (found == 0) return fail(ErrorCode::already_exists, std::string(path.text()), EEXIST);
    if (found != -ENOENT) return std::unexpected(paths_.lookup_error(found, path));
    return replace_content(path, Target{.entry = std::move(*entry), .exists = false, .status = {}}, data, true);
  }
  auto target = paths_.find_target(ctx, path);
  if (!target) {
    // For a file that must exist, a missing parent or one that is a file both mean that it does not.
    if (flag == WriteFlag::truncate && target.error().code == ErrorCode::not_a_directory) {
      return fail(ErrorCode::not_found, std::string(path.text()), ENOTDIR);
    }
    return std::unexpected(std::move(target.error()));
  }
  if (!target->exists && flag == WriteFlag::truncate)
    return fail(ErrorCode::not_found, std::string(path.text()), ENOENT);
  return replace_content(path, *target, data, false);
}

Result<WriteResult> LocalFileSystem::replace_content(PathView path, const Target& target, std::string_view data,
                                                     bool exclusive) {
  if (target.exists) {
    if (auto allowed = check_writable(path, target); !allowed) return std::unexpected(std::move(allowed.error()));
  }
  TempFile temp(files_, temp_names_, target.entry.dir_fd,
                target.exists ? target.status.st_mode & kModeBits : kNewFileMode);
  if (temp.fd() == -ENOENT) return fail(ErrorCode::not_found, paths_.host_path(path.parent()), ENOENT);
  if (temp.fd() < 0) return fail_errno(temp.fd(), path);
  const WriteProgress wrote = write_fully(files_, temp.fd(), data);
  if (wrote.error != 0) return fail_errno(wrote.error, path);
  return publish(path, target, temp, data.size(), exclusive);
}

Result<WriteResult> LocalFileSystem::publish(PathView path, const Target& target, TempFile& temp, uint64_t bytes,
                                             bool exclusive) {
  struct stat status = {};
  int result = stamp_now(files_, temp.fd());
  if (result == 0) result = retry_interrupted([&] { return files_.fstat(temp.fd(), &status); });
  if (result == 0 && target.exists) {
    const struct stat& old = target.status;
    if (status.st_uid != old.st_uid || status.st_gid != old.st_gid) {
      // Only root may give files away; for others the file becomes theirs, as with any editor.
      (void)files_.fchown(temp.fd(), old.st_uid, old.st_gid);
    }
    // After fchown, which clears set-id bits; the umask cut the mode at the creation.
    const mode_t mode = old.st_mode & kModeBits;
    if ((status.st_mode & kModeBits) != mode)
      result = retry_interrupted([&] { return files_.fchmod(temp.fd(), mode); });
  }
  if (result == 0 && config_.sync_writes) result = retry_interrupted([&] { return files_.fdatasync(temp.fd()); });
  if (result < 0) return fail_errno(result, path);
  RAGFS_PAUSE_POINT("localfs.before_rename");
  result = temp.take_name(target.entry.name.c_str(), exclusive);
  if (result < 0) return fail_errno(result, path);
  // The rename changed the ctime, which is part of the version.
  result = retry_interrupted([&] { return files_.fstat(temp.fd(), &status); });
  const int closed = temp.close();
  if (result == 0) result = closed;
  if (result < 0) return fail_errno(result, path);
  if (config_.sync_writes) {
    if (auto synced = fsync_dir(path, target.entry.dir_fd); !synced) return std::unexpected(std::move(synced.error()));
  }
  WriteResult written{.bytes = bytes, .meta = meta_of(status, target.entry.via_symlink)};
  // Somebody appended already: this meta does not describe the caller's bytes.
  if (written.meta.size != bytes) written.meta.cacheable = false;
  return written;
}

Result<FileMeta> LocalFileSystem::settle(PathView path, const OpenFile& file) const {
  struct stat after = {};
  int result = retry_interrupted([&] { return files_.fstat(file.fd.get(), &after); });
  if (result == 0 && same_state(file.status, after)) {
    result = stamp_now(files_, file.fd.get());
    if (result == 0) result = retry_interrupted([&] { return files_.fstat(file.fd.get(), &after); });
  }
  if (result < 0) return fail_errno(result, path);
  return meta_of(after, file.via_symlink);
}

Result<WriteResult> LocalFileSystem::write_in_place(const Context& ctx, PathView path, std::string_view data,
                                                    uint64_t offset, WriteFlag flag) {
  const bool append = flag == WriteFlag::append;
  auto file = open_file(ctx, path, append ? O_WRONLY | O_APPEND : O_WRONLY);
  if (!file) return std::unexpected(std::move(file.error()));
  if (!append && (offset > kMaxOffset || data.size() > kMaxOffset - offset)) {
    return fail(ErrorCode::invalid_operation, fmt::format("{}: offset {} is out of range", path.text(), offset));
  }
  const int fd = file->fd.get();
  const WriteProgress wrote =
      append ? write_fully(files_, fd, data) : pwrite_fully(files_, fd, data, static_cast<off_t>(offset));
  if (wrote.error != 0) {
    // Half an appended record would be appended to by the next try. Cut only when nobody else appended meanwhile.
    struct stat now = {};
    if (append && wrote.written > 0 && files_.fstat(fd, &now) == 0 &&
        now.st_size == file->status.st_size + static_cast<off_t>(wrote.written)) {
      (void)files_.ftruncate(fd, file->status.st_size);
    }
    return fail_errno(wrote.error, path);
  }
  if (config_.sync_writes) {
    const int synced = retry_interrupted([&] { return files_.fdatasync(fd); });
    if (synced < 0) return fail_errno(synced, path);
  }
  auto meta = settle(path, *file);
  if (!meta) return std::unexpected(std::move(meta.error()));
  if (const int closed = file->fd.close(); closed < 0) return fail_errno(closed, path);
  return WriteResult{.bytes = data.size(), .meta = std::move(*meta)};
}

Result<void> LocalFileSystem::truncate(const Context& ctx, PathView path, uint64_t size) {
  auto file = open_file(ctx, path, O_WRONLY);
  if (!file) return std::unexpected(std::move(file.error()));
  if (size > kMaxOffset) {
    return fail(ErrorCode::invalid_operation, fmt::format("{}: size {} is out of range", path.text(), size));
  }
  const int result = retry_interrupted([&] { return files_.ftruncate(file->fd.get(), static_cast<off_t>(size)); });
  if (result < 0) return fail_errno(result, path);
  auto meta = settle(path, *file);
  if (!meta) return std::unexpected(std::move(meta.error()));
  return {};
}

Result<void> LocalFileSystem::touch(const Context& ctx, PathView path) {
  auto file = open_file(ctx, path, O_WRONLY);
  if (!file && file.error().code == ErrorCode::not_found) {
    auto created = create(ctx, path);
    if (created || created.error().code != ErrorCode::already_exists) return created;
    file = open_file(ctx, path, O_WRONLY);  // somebody created it meanwhile, or it is a dangling link
  }
  if (!file) return std::unexpected(std::move(file.error()));
  const int result = stamp_now(files_, file->fd.get());
  if (result < 0) return fail_errno(result, path);
  return {};
}

Result<void> LocalFileSystem::chmod(const Context& ctx, PathView path, uint32_t /*mode*/) {
  auto looked = look(ctx, path);
  if (!looked) return std::unexpected(std::move(looked.error()));
  return {};
}

Result<std::optional<LocalFileSystem::Compared>> LocalFileSystem::lock_and_compare(const Context& ctx, PathView path,
                                                                                   std::string_view expected) const {
  auto target = paths_.find_target(ctx, path);
  if (!target) {
    const ErrorCode code = target.error().code;
    if (code == ErrorCode::not_found || code == ErrorCode::not_a_directory) return std::nullopt;
    return std::unexpected(std::move(target.error()));
  }
  if (!target->exists) return std::nullopt;
  if (auto allowed = check_writable(path, *target); !allowed) return std::unexpected(std::move(allowed.error()));
  const char* const name = target->entry.name.c_str();
  OwnedFd fd(files_, retry_interrupted([&] {
               return files_.openat(target->entry.dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                                    0);
             }));
  if (fd.get() == -ENOENT) return std::nullopt;
  if (!fd) return fail_errno(fd.get(), path);
  // An open-file-description lock: it excludes other threads, and the fcntl locks of other programs.
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const int locked = retry_interrupted([&] { return files_.try_lock(fd.get(), &lock); });
  if (locked == -EAGAIN || locked == -EACCES) return fail(ErrorCode::would_block, std::string(path.text()), EAGAIN);
  if (locked < 0) return fail_errno(locked, path);
  // Whoever held the lock before may have replaced the file: the name must still lead to what is locked.
  struct stat opened = {};
  struct stat named = {};
  int result = retry_interrupted([&] { return files_.fstat(fd.get(), &opened); });
  if (result < 0) return fail_errno(result, path);
  result = retry_interrupted([&] { return files_.fstatat(target->entry.dir_fd, name, &named, AT_SYMLINK_NOFOLLOW); });
  if (result == -ENOENT) return std::nullopt;
  if (result < 0) return fail_errno(result, path);
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) return std::nullopt;
  if (static_cast<uint64_t>(opened.st_size) != expected.size()) return std::nullopt;
  auto content = read_range(path, fd.get(), 0, expected.size());
  if (!content) return std::unexpected(std::move(content.error()));
  if (content->view() != expected) return std::nullopt;
  target->status = opened;
  return Compared{.target = std::move(*target), .fd = std::move(fd)};
}

Result<bool> LocalFileSystem::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                std::string_view replacement) {
  auto compared = lock_and_compare(ctx, path, expected);
  if (!compared) return std::unexpected(std::move(compared.error()));
  const std::optional<Compared>& found = *compared;
  if (!found) return false;
  RAGFS_PAUSE_POINT("localfs.compared");
  auto written = replace_content(path, found->target, replacement, false);
  if (!written) return std::unexpected(std::move(written.error()));
  return true;
}

Result<bool> LocalFileSystem::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  auto compared = lock_and_compare(ctx, path, expected);
  if (!compared) return std::unexpected(std::move(compared.error()));
  const std::optional<Compared>& found = *compared;
  if (!found) return false;
  const NamedEntry& entry = found->target.entry;
  const int result = retry_interrupted([&] { return files_.unlinkat(entry.dir_fd, entry.name.c_str(), 0); });
  if (result < 0) return fail_errno(result, path);
  return true;
}

}  // namespace ragfs
