#include "ragfs/cache/lives/identity_lock.h"

#include <fmt/format.h>

#include <array>

#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

constexpr mode_t kFileMode = 0600;

std::string holder_in(PosixFiles& files, int fd) {
  std::array<char, 256> text;
  const ssize_t size = pread_fully(files, fd, text.data(), text.size(), 0);
  if (size <= 0) return "another process";
  return std::string(text.data(), static_cast<size_t>(size));
}

std::string name_of(uint64_t identity_hash) { return fmt::format("lock-{:016x}", identity_hash); }

int try_lock(PosixFiles& files, int fd, LockKind kind) {
  struct flock lock = {};
  lock.l_type = kind == LockKind::exclusive ? F_WRLCK : F_RDLCK;
  lock.l_whence = SEEK_SET;
  return retry_interrupted([&] { return files.try_lock(fd, &lock); });
}

// False when the file was removed, by its last holder, between the opening and the locking.
bool is_named(PosixFiles& files, int directory, const std::string& name, int fd) {
  struct stat opened = {};
  struct stat named = {};
  if (retry_interrupted([&] { return files.fstat(fd, &opened); }) < 0) return false;
  const int found =
      retry_interrupted([&] { return files.fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW); });
  return found == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

}  // namespace

Result<IdentityLock> lock_identity(const StateDir& directory, uint64_t identity_hash, LockKind kind,
                                   std::string_view holder) {
  constexpr int kMostRemovals = 100;  // each time, another process gave the lock back in between
  if (auto made = directory.make(); !made) return std::unexpected(made.error());
  PosixFiles& files = directory.files();
  const Result<OwnedFd> at = directory.open();
  if (!at) return std::unexpected(at.error());
  const std::string name = name_of(identity_hash);
  const std::string shown = directory.path() + "/" + name;
  for (int attempt = 0; attempt < kMostRemovals; ++attempt) {
    OwnedFd fd(files, retry_interrupted([&] {
                 return files.openat(at->get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode);
               }));
    if (!fd) return std::unexpected(error_from_errno(-fd.get(), shown));
    RAGFS_PAUSE_POINT("identity_lock.opened");
    const int locked = try_lock(files, fd.get(), kind);
    if (locked == -EAGAIN || locked == -EACCES) {
      return fail(ErrorCode::lock_conflict, holder_in(files, fd.get()), EAGAIN);
    }
    if (locked < 0) return std::unexpected(error_from_errno(-locked, shown));
    if (!is_named(files, at->get(), name, fd.get())) continue;
    if (kind == LockKind::exclusive) {
      // For people: what it says decides nothing.
      (void)files.ftruncate(fd.get(), 0);
      (void)pwrite_fully(files, fd.get(), holder, 0);
    }
    return IdentityLock(std::move(fd), kind, identity_hash);
  }
  return fail(ErrorCode::would_block, fmt::format("{}: it is taken and given back all the time", shown));
}

void IdentityLock::give_back(const StateDir& directory) {
  PosixFiles& files = directory.files();
  // Alone, and nobody else can come to hold this very file any more: it may go.
  if (fd_ && try_lock(files, fd_.get(), LockKind::exclusive) == 0) {
    const Result<OwnedFd> at = directory.open();
    const std::string name = name_of(identity_hash_);
    if (at && is_named(files, at->get(), name, fd_.get())) (void)files.unlinkat(at->get(), name.c_str(), 0);
  }
  fd_.close();
}

}  // namespace ragfs
