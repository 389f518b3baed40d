#include "ragfs/backends/local/local_paths.h"

#include <fmt/format.h>
#include <linux/openat2.h>

#include <climits>
#include <cstring>

#include "ragfs/backends/local/temp_files.h"

namespace ragfs {
namespace {

constexpr int kRaceAttempts = 64;  // RESOLVE_BENEATH answers EAGAIN when a rename ran beside it
constexpr int kLinkAttempts = 8;   // a link that is replaced by another while it is followed

// O_PATH takes few flags. For the rest: a FIFO or a terminal must neither block nor become ours.
int safe_flags(int flags) {
  return (flags & O_PATH) != 0 ? flags | O_CLOEXEC : flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
}

}  // namespace

RelativePath::RelativePath(PathView path) noexcept {
  const std::string_view text = path.is_root() ? std::string_view(".") : path.text().substr(1);
  std::memcpy(text_, text.data(), text.size());
  text_[text.size()] = '\0';
}

Result<LocalPaths> LocalPaths::open(PosixFiles& files, const std::string& root_dir) {
  const int fd =
      retry_interrupted([&] { return files.openat(AT_FDCWD, root_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0); });
  if (fd == -ENOENT) return fail(ErrorCode::plugin, fmt::format("base path does not exist: {}", root_dir), ENOENT);
  if (fd == -ENOTDIR) {
    return fail(ErrorCode::plugin, fmt::format("base path is not a directory: {}", root_dir), ENOTDIR);
  }
  if (fd < 0) return std::unexpected(error_from_errno(-fd, root_dir));
  LocalPaths paths(files, OwnedFd(files, fd), root_dir);
  const OwnedFd probe(files, files.openat2(fd, ".", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS));
  if (!probe) {
    return fail(
        ErrorCode::not_supported,
        fmt::format("{}: localfs needs openat2 (Linux 5.6 or newer, allowed by the container's seccomp profile)",
                    root_dir),
        -probe.get());
  }
  std::string real;
  if (paths.name_of(fd, real) == 0) paths.root_dir_ = std::move(real);
  return paths;
}

std::string LocalPaths::host_path(PathView path) const {
  if (path.is_root()) return root_dir_;
  return root_dir_ == "/" ? std::string(path.text()) : root_dir_ + std::string(path.text());
}

int LocalPaths::name_of(int fd, std::string& name) const {
  char target[PATH_MAX];
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  const ssize_t size =
      retry_interrupted([&] { return files_->readlinkat(AT_FDCWD, link.c_str(), target, sizeof(target)); });
  if (size < 0 && size != -ENOENT) return static_cast<int>(size);
  if (size <= 0 || size >= static_cast<ssize_t>(sizeof(target)) || target[0] != '/') return -EXDEV;
  name.assign(target, static_cast<size_t>(size));
  return 0;
}

int LocalPaths::place_of(int fd, std::string& relative) const {
  std::string place;
  std::string root;  // asked anew: the root may have been moved on the host
  int result = name_of(fd, place);
  if (result == 0) result = name_of(root_.get(), root);
  if (result < 0) return result;
  if (root == "/") {
    relative = place.substr(1);
    return 0;
  }
  if (!place.starts_with(root) || (place.size() > root.size() && place[root.size()] != '/')) return -EXDEV;
  relative = place.size() > root.size() ? place.substr(root.size() + 1) : std::string();
  return 0;
}

int LocalPaths::open_following(const char* relative, int flags) const {
  for (int attempt = 0; attempt < kRaceAttempts; ++attempt) {
    const int fd = files_->openat2(root_.get(), relative, flags, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    if (fd == -EXDEV) return open_absolute_link(relative, flags);
    if (fd != -EAGAIN && fd != -EINTR) return fd;
  }
  return -ELOOP;
}

int LocalPaths::open_absolute_link(const char* relative, int flags) const {
  // A descriptor that can only be asked where it is: nothing outside the root is opened for reading or writing.
  const int where_fd =
      retry_interrupted([&] { return files_->openat2(root_.get(), relative, O_PATH | O_CLOEXEC, 0, 0); });
  if (where_fd < 0) return where_fd;
  const OwnedFd where(*files_, where_fd);
  std::string inside;
  if (const int result = place_of(where_fd, inside); result < 0) return result;
  if (inside.empty()) inside = ".";
  return retry_interrupted(
      [&] { return files_->openat2(root_.get(), inside.c_str(), flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH); });
}

Error LocalPaths::lookup_error(int negated_errno, PathView path) const {
  const std::string text(path.text());
  switch (-negated_errno) {
    case ENOENT:
    case ENOTDIR: {
      struct stat root = {};
      const int asked = retry_interrupted([&] { return files_->fstat(root_.get(), &root); });
      if (asked < 0) return error_from_errno(-asked, text);
      if (root.st_nlink == 0) {
        return {ErrorCode::io, fmt::format("{}: the root directory {} was removed; mount again", text, root_dir_),
                -negated_errno};
      }
      return {ErrorCode::not_found, text, -negated_errno};
    }
    case EXDEV:
      return {ErrorCode::permission_denied, fmt::format("{}: a symlink leaves the root directory", text), EXDEV};
    case ENXIO:
    case ENODEV: return {ErrorCode::invalid_operation, fmt::format("{}: not a regular file", text), -negated_errno};
    case EISDIR: return {ErrorCode::is_a_directory, text, EISDIR};
    default: return error_from_errno(-negated_errno, text);
  }
}

Result<OpenedPath> LocalPaths::open(const Context& ctx, PathView path, int flags) const {
  if (TempNames::in_path(path)) return fail(ErrorCode::not_found, std::string(path.text()));
  const RelativePath relative(path);
  const int open_flags = safe_flags(flags);
  int fd = retry_interrupted(
      [&] { return files_->openat2(root_.get(), relative.c_str(), open_flags, 0, RESOLVE_NO_SYMLINKS); });
  bool via_symlink = false;
  if (fd == -ELOOP) {
    via_symlink = true;
    ctx.via_symlink = true;
    fd = open_following(relative.c_str(), open_flags);
  }
  if (fd >= 0) return OpenedPath{.fd = OwnedFd(*files_, fd), .via_symlink = via_symlink};
  if (fd == -ENOTDIR && (flags & O_DIRECTORY) != 0) {
    // Either the end is no directory, or the path goes through a file and names nothing.
    auto what = open(ctx, path, O_PATH);
    if (what) return fail(ErrorCode::not_a_directory, std::string(path.text()), ENOTDIR);
    return what;
  }
  return std::unexpected(lookup_error(fd, path));
}

Result<NamedEntry> LocalPaths::open_parent(const Context& ctx, PathView path) const {
  if (path.is_root()) return fail(ErrorCode::invalid_operation, "the root has no parent");
  if (TempNames::in_path(path)) {
    return fail(ErrorCode::invalid_path, fmt::format("{}: names of this form are temporary files", path.text()));
  }
  NamedEntry entry;
  entry.name = path.name();
  const PathView parent = path.parent();
  if (parent.is_root()) {
    entry.dir_fd = root_.get();
    return entry;
  }
  const RelativePath relative(parent);
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  int fd =
      retry_interrupted([&] { return files_->openat2(root_.get(), relative.c_str(), kFlags, 0, RESOLVE_NO_SYMLINKS); });
  if (fd == -ELOOP) {
    entry.via_symlink = true;
    ctx.via_symlink = true;
    fd = open_following(relative.c_str(), kFlags);
  }
  if (fd == -ENOTDIR) return fail(ErrorCode::not_a_directory, std::string(parent.text()), ENOTDIR);
  if (fd < 0) {
    Error error = lookup_error(fd, parent);
    if (error.code == ErrorCode::not_found) error.message = host_path(parent);
    return std::unexpected(std::move(error));
  }
  entry.dir_owned = OwnedFd(*files_, fd);
  entry.dir_fd = fd;
  return entry;
}

Result<Path> LocalPaths::real_path(const Context& ctx, PathView path) const {
  auto opened = open(ctx, path, O_PATH);
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::string inside;
  const int result = place_of(opened->fd.get(), inside);
  if (result < 0) return std::unexpected(lookup_error(result, path));
  return Path::parse(inside);
}

Result<Target> LocalPaths::find_target(const Context& ctx, PathView path) const {
  Path real;
  PathView at = path;
  for (int attempt = 0; attempt < kLinkAttempts; ++attempt) {
    if (at.is_root()) return fail(ErrorCode::is_a_directory, std::string(path.text()));
    auto entry = open_parent(ctx, at);
    if (!entry) return std::unexpected(std::move(entry.error()));
    Target target;
    const int result = retry_interrupted(
        [&] { return files_->fstatat(entry->dir_fd, entry->name.c_str(), &target.status, AT_SYMLINK_NOFOLLOW); });
    target.entry = std::move(*entry);
    target.entry.via_symlink = target.entry.via_symlink || attempt > 0;
    if (result == -ENOENT) return target;
    if (result < 0) return std::unexpected(lookup_error(result, path));
    if (!S_ISLNK(target.status.st_mode)) {
      target.exists = true;
      return target;
    }
    ctx.via_symlink = true;
    auto leads_to = real_path(ctx, at);
    if (!leads_to) return std::unexpected(std::move(leads_to.error()));
    real = std::move(*leads_to);
    at = real;
  }
  return std::unexpected(lookup_error(-ELOOP, path));
}

}  // namespace ragfs
