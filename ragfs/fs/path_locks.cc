#include "ragfs/fs/path_locks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ragfs/base/hash.h"
#include "ragfs/base/random.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLeastExpireMs = 1'000;

std::string_view kind_text(PathLockKind kind) { return kind == PathLockKind::subtree ? "tree" : "exact"; }

}  // namespace

Result<void> PathLocksConfig::validate() const {
  if (expire_ms >= kLeastExpireMs) return {};
  return fail(ErrorCode::config,
              fmt::format("pathlock.lock_expire_secs: {} ms is not allowed; it must be at least 1 second", expire_ms));
}

PathLocks::PathLocks(PathLocksConfig config, const Clock& clock)
    : config_(config), clock_(clock), table_(config.table), seed_(random_u64()) {}

bool PathLocks::covers(std::span<const Owned> all, const PathLockRequest& request) {
  return std::ranges::any_of(all, [&](const Owned& owned) {
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
  return hold_more(nullptr, requests, timeout_ms);
}

Result<PathLockTable::Held> PathLocks::hold_more(const PathLockTable::Held* owner,
                                                 std::span<const PathLockRequest> requests, int64_t timeout_ms) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  while (true) {
    // A waiter looks again whenever a lease in its way may have run out.
    const int64_t next_ns = take_back_expired();
    const Deadline until =
        Deadline::earlier(deadline, Deadline::in_ns(std::max<int64_t>(next_ns - clock_.monotonic_ns(), kNsPerMs)));
    Result<PathLockTable::Held> held =
        owner == nullptr ? table_.acquire(requests, until) : table_.acquire_more(*owner, requests, until);
    if (held) return held;
    const bool waited_out = held.error().code == ErrorCode::timeout || deadline.expired();
    if (!waited_out) return held;
    if (deadline.expired()) return std::unexpected(conflict(timeout_ms));
  }
}

Result<std::vector<std::shared_ptr<const PathLocks::Grant>>> PathLocks::relied_on(
    std::string_view owner_lease, std::vector<PathLockRequest>& requests) {
  std::vector<std::shared_ptr<const Grant>> out;
  if (owner_lease.empty()) return out;
  const auto found = leases_.find(owner_lease);
  if (found == leases_.end()) {
    return fail(ErrorCode::invalid_argument, fmt::format("unknown owner lease '{}'", owner_lease));
  }
  const Lease& owner = found->second;
  for (const auto& grant : owner.grants) {
    const size_t before = requests.size();
    std::erase_if(requests, [&](const PathLockRequest& request) { return covers(grant->paths, request); });
    if (requests.size() < before) out.push_back(grant);
  }
  if (out.empty()) out.push_back(owner.grants.front());
  return out;
}

Result<std::string> PathLocks::acquire(std::span<const PathLockRequest> requests, int64_t timeout_ms,
                                       std::string_view owner_lease) {
  if (requests.empty()) return fail(ErrorCode::invalid_argument, "pathlock request batch must not be empty");
  take_back_expired();
  std::vector<PathLockRequest> missing(requests.begin(), requests.end());
  Lease lease;
  {
    MutexLock lock(mutex_);
    if (leases_.size() >= config_.max_leases) return fail(ErrorCode::would_block, "too many path-lock leases");
    auto relied = relied_on(owner_lease, missing);
    if (!relied) return std::unexpected(std::move(relied.error()));
    lease.grants = *std::move(relied);
  }
  const auto owned = [](std::span<const PathLockRequest> of) {
    std::vector<Owned> out;
    for (const PathLockRequest& request : of) out.push_back({std::string(request.path.text()), request.kind});
    return out;
  };
  if (!missing.empty()) {
    const PathLockTable::Held* owner = lease.grants.empty() ? nullptr : &lease.grants.front()->held;
    Result<PathLockTable::Held> held = hold_more(owner, missing, timeout_ms);
    if (!held) return std::unexpected(std::move(held.error()));
    lease.grants.push_back(std::make_shared<const Grant>(Grant{owned(missing), *std::move(held)}));
    // Nothing is kept from others for the owner's sake alone.
    if (missing.size() == requests.size()) lease.grants.erase(lease.grants.begin(), lease.grants.end() - 1);
  }
  lease.covered = owned(requests);
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
    if (covers(found->second.covered, request)) continue;
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
