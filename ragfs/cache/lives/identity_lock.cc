#include "ragfs/cache/lives/identity_lock.h"

#include <fmt/format.h>

#include <array>

namespace ragfs {
namespace {

constexpr mode_t kFileMode = 0600;

std::string holder_in(PosixFiles& files, int fd) {
  std::array<char, 256> text;
  const ssize_t size = pread_fully(files, fd, text.data(), text.size(), 0);
  if (size <= 0) return "another process";
  return std::string(text.data(), static_cast<size_t>(size));
}

}  // namespace

Result<IdentityLock> lock_identity(const StateDir& directory, uint64_t identity_hash, LockKind kind,
                                   std::string_view holder) {
  if (auto made = directory.make(); !made) return std::unexpected(made.error());
  PosixFiles& files = directory.files();
  const Result<OwnedFd> at = directory.open();
  if (!at) return std::unexpected(at.error());
  const std::string name = fmt::format("lock-{:016x}", identity_hash);
  const std::string shown = directory.path() + "/" + name;
  OwnedFd fd(files, retry_interrupted([&] {
               return files.openat(at->get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode);
             }));
  if (!fd) return std::unexpected(error_from_errno(-fd.get(), shown));
  struct flock lock = {};
  lock.l_type = kind == LockKind::exclusive ? F_WRLCK : F_RDLCK;
  lock.l_whence = SEEK_SET;
  const int locked = retry_interrupted([&] { return files.try_lock(fd.get(), &lock); });
  if (locked == -EAGAIN || locked == -EACCES) return fail(ErrorCode::lock_conflict, holder_in(files, fd.get()), EAGAIN);
  if (locked < 0) return std::unexpected(error_from_errno(-locked, shown));
  if (kind == LockKind::exclusive) {
    // For people: what it says decides nothing.
    (void)files.ftruncate(fd.get(), 0);
    (void)pwrite_fully(files, fd.get(), holder, 0);
  }
  return IdentityLock(std::move(fd), kind);
}

}  // namespace ragfs
