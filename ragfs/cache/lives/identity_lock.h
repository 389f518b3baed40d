// IdentityLock: the lock file of a backend identity, which keeps writing processes of one machine apart.
//
// exclusive: a process with the cache, which then knows of every mutation. shared: processes without a cache, or with
// one that checks each object (`shared: true`). The lock belongs to the open file: it ends with the process, however
// that ends, and is not waited for. A child of fork() has to close() its copy, or it would hold the lock on. The file
// goes with its last holder, so that the directory does not fill up with the names of directories that are long gone.
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
  IdentityLock(OwnedFd fd, LockKind kind, uint64_t identity_hash)
      : fd_(std::move(fd)), kind_(kind), identity_hash_(identity_hash) {}
  LockKind kind() const { return kind_; }
  int fd() const { return fd_.get(); }
  // Gives the lock back, and removes its file when nobody else holds it. Destroyed without, the file stays.
  void give_back(const StateDir& directory);
  // For a child of fork(), which has closed the descriptor itself.
  void forget() { (void)fd_.release(); }

 private:
  OwnedFd fd_;
  LockKind kind_;
  uint64_t identity_hash_;
};

// Makes the state directory when needed. `holder`: what others are told while it is held ("pid 4711 on host").
// Errors: lock_conflict, whose message is the holder as it named itself; those of the system.
Result<IdentityLock> lock_identity(const StateDir& directory, uint64_t identity_hash, LockKind kind,
                                   std::string_view holder);

}  // namespace ragfs
