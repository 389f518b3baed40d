// PathLockTable: hierarchical locks on paths, in memory.
//
// For: making operations on one path, or on a subtree, exclude each other, with a deadline. Two users: the file
// system's user-visible path locks, and the cache's mutation lock. Not for: locks between processes.
//
// Rules. exact(p) excludes exact(p), shared(p) and any subtree(q) with p within q. subtree(p) excludes everything at or
// below p and any subtree at or above p. shared(p) excludes what exact(p) excludes but other shared(p). Requests are
// granted in the order of arrival as far as they conflict: a later one never overtakes an earlier one that it conflicts
// with, so nobody starves; requests that do not conflict never wait for each other. A batch is granted whole or not at
// all, so there is no hold-and-wait and no deadlock.
// acquire_more() is for one who holds locks already and asks for more (an exact lock that becomes a subtree lock, a
// call inside a call): what he holds is not in his way, nor is who waits since he came, for that one may wait for him.
// This is hold-and-wait: two who ask for each other's locks wait until a deadline. Bounds: at most `max_waiting`
// requests wait; a request that need not wait is refused past `max_held` held ones (those that waited are granted above
// it, so max_held + max_waiting bounds the table). Refused means would_block. Thread-safety: all methods may be called
// from any thread. No lock of the table is held while the caller runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"

namespace ragfs {

enum class PathLockKind : uint8_t { exact, subtree, shared };

struct PathLockRequest {
  PathView path;
  PathLockKind kind = PathLockKind::exact;
};

struct PathLockLimits {
  size_t max_waiting = 4096;
  size_t max_held = 65536;
};

struct PathLockCounts {
  uint64_t held = 0;
  uint64_t waiting = 0;
  uint64_t timeouts_total = 0;
  uint64_t refused_total = 0;  // bounds reached
};

class PathLockTable {
  struct State;
  struct Batch;

 public:
  explicit PathLockTable(PathLockLimits limits = {});
  // Every Held must be gone.
  ~PathLockTable();
  PathLockTable(const PathLockTable&) = delete;
  PathLockTable& operator=(const PathLockTable&) = delete;

  // Releases its locks when destroyed. May be released by another thread than the one that acquired it.
  class Held {
   public:
    Held() noexcept;
    Held(Held&& other) noexcept;
    Held& operator=(Held&& other) noexcept;
    ~Held();
    void release() noexcept;
    explicit operator bool() const noexcept { return batch_ != nullptr; }

   private:
    friend class PathLockTable;
    Held(State* state, std::unique_ptr<Batch> batch) noexcept;
    State* state_;
    std::unique_ptr<Batch> batch_;
  };

  // Waits until all requests can be granted together. The texts are copied. Requests of one batch never conflict with
  // each other. Errors: timeout at the deadline; would_block past a bound, or at once when the deadline has passed.
  Result<Held> acquire(std::span<const PathLockRequest> requests, Deadline deadline);
  // The same for who holds `owner`, which must be held for the whole call. What is returned is released on its own, and
  // may outlive `owner`. Errors: as acquire.
  Result<Held> acquire_more(const Held& owner, std::span<const PathLockRequest> requests, Deadline deadline);

  PathLockCounts counts() const;

 private:
  // `ticket` 0 takes a new one.
  Result<Held> acquire_with(uint64_t ticket, std::span<const PathLockRequest> requests, Deadline deadline);

  std::unique_ptr<State> state_;
};

}  // namespace ragfs
