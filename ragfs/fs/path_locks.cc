#include "ragfs/fs/path_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "ragfs/base/hash.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLeastExpireMs = 1'000;

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string_view kind_text(PathLockKind kind) { return kind == PathLockKind::subtree ? "tree" : "exact"; }

}  // namespace

Result<void> PathLocksConfig::validate() const {
  if (expire_ms >= kLeastExpireMs) return {};
  return fail(ErrorCode::config,
              fmt::format("pathlock.lock_expire_secs: {} ms is not allowed; it must be at least 1 second", expire_ms));
}

PathLocks::PathLocks(PathLocksConfig config, const Clock& clock)
    : config_(config), clock_(clock), table_(config.table), seed_(random_seed()) {}

bool PathLocks::covers(const Lease& lease, const PathLockRequest& request) {
  return std::ranges::any_of(lease.covered, [&](const Owned& owned) {
    const PathView path = PathView::from_normal(owned.path);
    if (owned.kind == PathLockKind::subtree) return request.path.is_within(path);
    return request.kind != PathLockKind::subtree && request.path == path;
  });
}

int64_t PathLocks::take_back_expired() {
  const int64_t lives_ns = 2 * config_.expire_ms * kNsPerMs;
  const int64_t now_ns = clock_.monotonic_ns();
  int64_t next_ns = now_ns + lives_ns;
  std::vector<Lease> taken;  // their locks are released after the mutex
  MutexLock lock(mutex_);
  for (auto at = leases_.begin(); at != leases_.end();) {
    const int64_t ends_ns = at->second.refreshed_ns + lives_ns;
    if (ends_ns <= now_ns) {
      taken.push_back(std::move(at->second));
      at = leases_.erase(at);
      ++expired_;
    } else {
      next_ns = std::min(next_ns, ends_ns);
      ++at;
    }
  }
  return next_ns;
}

Error PathLocks::conflict(int64_t timeout_ms) {
  MutexLock lock(mutex_);
  ++conflicts_;
  return {ErrorCode::lock_conflict, fmt::format("lock acquire timed out after {}ms", timeout_ms)};
}

Result<PathLockTable::Held> PathLocks::hold(std::span<const PathLockRequest> requests, int64_t timeout_ms) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  while (true) {
    // A waiter looks again whenever a lease in its way may have run out.
    const int64_t next_ns = take_back_expired();
    const Deadline look_again = Deadline::in_ns(std::max<int64_t>(next_ns - clock_.monotonic_ns(), kNsPerMs));
    Result<PathLockTable::Held> held = table_.acquire(requests, Deadline::earlier(deadline, look_again));
    if (held) return held;
    const bool waited_out = held.error().code == ErrorCode::timeout || deadline.expired();
    if (!waited_out) return held;
    if (deadline.expired()) return std::unexpected(conflict(timeout_ms));
  }
}

Result<std::string> PathLocks::acquire(std::span<const PathLockRequest> requests, int64_t timeout_ms,
                                       std::string_view owner_lease) {
  if (requests.empty()) return fail(ErrorCode::invalid_argument, "pathlock request batch must not be empty");
  std::vector<PathLockRequest> missing(requests.begin(), requests.end());
  {
    MutexLock lock(mutex_);
    if (leases_.size() >= config_.max_leases) return fail(ErrorCode::would_block, "too many path-lock leases");
    if (!owner_lease.empty()) {
      const auto owner = leases_.find(owner_lease);
      if (owner == leases_.end()) {
        return fail(ErrorCode::invalid_argument, fmt::format("unknown owner lease '{}'", owner_lease));
      }
      std::erase_if(missing, [&](const PathLockRequest& request) { return covers(owner->second, request); });
    }
  }
  Lease lease;
  if (!missing.empty()) {
    Result<PathLockTable::Held> held = hold(missing, timeout_ms);
    if (!held) return std::unexpected(std::move(held.error()));
    lease.held.push_back(*std::move(held));
  }
  for (const PathLockRequest& request : requests)
    lease.covered.push_back({std::string(request.path.text()), request.kind});
  lease.refreshed_ns = clock_.monotonic_ns();
  MutexLock lock(mutex_);
  std::string name = fmt::format("{:016x}-{:x}", mix64(seed_ ^ next_), next_);
  ++next_;
  leases_.emplace(name, std::move(lease));
  return name;
}

Result<void> PathLocks::release(std::string_view lease) {
  Lease ended;  // its locks are released after the mutex
  MutexLock lock(mutex_);
  const auto found = leases_.find(lease);
  if (found == leases_.end())
    return fail(ErrorCode::invalid_argument, fmt::format("unknown path-lock lease '{}'", lease));
  ended = std::move(found->second);
  leases_.erase(found);
  return {};
}

bool PathLocks::refresh(std::string_view lease) {
  take_back_expired();
  MutexLock lock(mutex_);
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return false;
  found->second.refreshed_ns = clock_.monotonic_ns();
  return true;
}

Result<void> PathLocks::check_covers(std::string_view lease, std::span<const PathLockRequest> requests) {
  take_back_expired();
  MutexLock lock(mutex_);
  const auto found = leases_.find(lease);
  if (found == leases_.end()) {
    return fail(ErrorCode::internal, fmt::format("lock lease error: unknown or expired lease '{}'", lease));
  }
  for (const PathLockRequest& request : requests) {
    if (covers(found->second, request)) continue;
    return fail(ErrorCode::internal, fmt::format("lock lease error: lease does not cover {} ({})", request.path.text(),
                                                 kind_text(request.kind)));
  }
  return {};
}

bool PathLocks::is_locked(PathView path) {
  take_back_expired();
  const PathLockRequest request{path, PathLockKind::exact};
  return !table_.acquire({&request, 1}, Deadline::at_ns(0)).has_value();
}

PathLocksCounts PathLocks::counts() {
  PathLocksCounts counts;
  counts.table = table_.counts();
  MutexLock lock(mutex_);
  counts.leases = leases_.size();
  counts.expired_total = expired_;
  counts.conflicts_total = conflicts_;
  return counts;
}

}  // namespace ragfs
