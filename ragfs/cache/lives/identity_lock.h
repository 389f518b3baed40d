// IdentityLock: the lock file of a backend identity, which keeps writing processes of one machine apart.
//
// exclusive: a process with the cache, which then knows of every mutation. shared: processes without a cache, or with
// one that checks each object (`shared: true`). The lock belongs to the open file: it ends with the process, however
// that ends, and is not waited for. A child of fork() has to close() its copy, or it would hold the lock on.
// Thread-safety: an IdentityLock belongs to one thread at a time; lock_identity() may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "ragfs/base/error.h"
#include "ragfs/base/file_io.h"
#include "ragfs/cache/lives/state_dir.h"

namespace ragfs {

enum class LockKind : uint8_t { exclusive, shared };

class IdentityLock {
 public:
  IdentityLock(OwnedFd fd, LockKind kind) : fd_(std::move(fd)), kind_(kind) {}
  LockKind kind() const { return kind_; }
  int fd() const { return fd_.get(); }

 private:
  OwnedFd fd_;
  LockKind kind_;
};

// Makes the state directory when needed. `holder`: what others are told while it is held ("pid 4711 on host").
// Errors: lock_conflict, whose message is the holder as it named itself; those of the system.
Result<IdentityLock> lock_identity(const StateDir& directory, uint64_t identity_hash, LockKind kind,
                                   std::string_view holder);

}  // namespace ragfs
