#include "python/lock_book.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "python/lock_files.h"
#include "python/lock_names.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/path.h"
#include "ragfs/base/random.h"

namespace ragfs::python {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr size_t kMaxAdopted = 1'024;
// Between two looks at other processes' lock files.
constexpr int64_t kFirstPause_ms = 50;
constexpr int64_t kLongestPause_ms = 500;

std::string timed_out_text(int64_t timeout_ms) { return fmt::format("lock acquire timed out after {}ms", timeout_ms); }

bool is_below(std::string_view path, std::string_view dir) {
  if (dir == "/") return path.size() > 1;
  return path.size() > dir.size() && path.starts_with(dir) && path[dir.size()] == '/';
}

std::string_view parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? std::string_view("/") : path.substr(0, slash);
}

std::string shown_lock_path(const std::string& lock_path, std::string_view path, bool tree) {
  if (!lock_path.empty()) return lock_path;
  return tree ? directory_lock_path(path) : sidecar_lock_path(path);
}

// Tree wins over exact of the same path; sorted by length, then path.
std::vector<LockRequest> deduplicated(std::vector<LockRequest> requests) {
  std::ranges::sort(requests, [](const LockRequest& a, const LockRequest& b) {
    if (a.path.size() != b.path.size()) return a.path.size() < b.path.size();
    return a.path != b.path ? a.path < b.path : a.tree > b.tree;
  });
  const auto same = std::ranges::unique(requests, {}, &LockRequest::path);
  requests.erase(same.begin(), same.end());
  return requests;
}

std::unexpected<Error> not_owned(std::string_view lease_ref) {
  return fail(ErrorCode::invalid_argument, fmt::format("owned lease capability does not match ref '{}'", lease_ref));
}

std::unexpected<Error> lease_error(std::string text) {
  return fail(ErrorCode::internal, "lock lease error: invalid lock request: " + std::move(text));
}

}  // namespace

LockBook::LockBook(int64_t expire_ms, LockFiles* files) : expire_ms_(expire_ms), files_(files) {
  if (files == nullptr) return;
  keeper_pid_ = ::getpid();
  keeper_ = std::thread([this] { keep_files(); });
}

LockBook::~LockBook() {
  if (files_ == nullptr) return;
  if (keeper_pid_ != ::getpid()) {
    keeper_.detach();  // it belongs to the parent of this process
  } else {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      stop_.notify_all();
    }
    keeper_.join();
  }
  // What nobody has released would be in other processes' way until it expires.
  for (const auto& [ref, lease] : leases_) files_->give_back(lease.requests, lease.owner_id);
  flush_expired();
}

void LockBook::keep_files() {
  const int64_t every_ms = std::max<int64_t>(expire_ms_ / 3, 1);
  while (true) {
    {
      const MutexLock lock(mutex_);
      const Deadline next = Deadline::in_ms(every_ms);
      while (!stopping_ && stop_.wait_until(mutex_, next)) {
      }
      if (stopping_) return;
      (void)take_back_expired();
    }
    flush_expired();
    files_->refresh();
  }
}

std::optional<LockConflict> LockBook::conflict(const LockRequest& request, std::string_view owner) {
  const auto blocks = [&](const std::string& path, const Entry& entry) {
    return LockConflict{shown_lock_path(entry.lock_path, path, entry.tree), entry.owner, entry.tree};
  };
  if (held_.empty()) return std::nullopt;
  const auto own = held_.find(request.path);
  if (own != held_.end()) {
    for (const Entry& entry : own->second) {
      if (entry.owner != owner) return blocks(own->first, entry);
    }
  }
  for (std::string_view path = request.path; path != "/";) {
    path = parent_of(path);
    const auto above = held_.find(path);
    if (above == held_.end()) continue;
    for (const Entry& entry : above->second) {
      if (entry.tree && entry.owner != owner) return blocks(above->first, entry);
    }
  }
  if (!request.tree) return std::nullopt;
  const int64_t began_ns = Clock::system().monotonic_ns();
  ++counts_.descendant_scans;
  std::optional<LockConflict> found;
  const std::string prefix = request.path == "/" ? "/" : request.path + "/";
  for (auto at = held_.lower_bound(prefix); !found && at != held_.end() && at->first.starts_with(prefix); ++at) {
    if (!is_below(at->first, request.path)) continue;
    for (const Entry& entry : at->second) {
      if (entry.owner != owner) found = blocks(at->first, entry);
    }
  }
  counts_.descendant_scan_ns += static_cast<uint64_t>(Clock::system().monotonic_ns() - began_ns);
  return found;
}

std::optional<LockConflict> LockBook::conflict(const std::vector<LockRequest>& requests, std::string_view owner) {
  for (const LockRequest& request : requests) {
    if (auto found = conflict(request, owner)) return found;
  }
  return std::nullopt;
}

void LockBook::add(const std::vector<LockRequest>& requests, const std::string& owner) {
  for (const LockRequest& request : requests) {
    std::vector<Entry>& entries = held_[request.path];
    const auto same = std::ranges::find_if(
        entries, [&](const Entry& entry) { return entry.owner == owner && entry.tree == request.tree; });
    if (same != entries.end()) {
      ++same->count;
    } else {
      entries.push_back({owner, request.tree, 1, request.lock_path});
    }
  }
}

void LockBook::remove_one(const LockRequest& request, std::string_view owner) {
  const auto at = held_.find(request.path);
  if (at == held_.end()) return;
  std::erase_if(at->second,
                [&](Entry& entry) { return entry.owner == owner && entry.tree == request.tree && --entry.count == 0; });
  if (at->second.empty()) held_.erase(at);
}

void LockBook::remove(const std::vector<LockRequest>& requests, std::string_view owner) {
  for (const LockRequest& request : requests) remove_one(request, owner);
  ++changes_;
  changed_.notify_all();
}

int64_t LockBook::take_back_expired() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (now_ns < next_expiry_ns_) return next_expiry_ns_;
  const int64_t lives_ns = 2 * expire_ms_ * kNsPerMs;
  int64_t next_ns = now_ns + lives_ns;
  for (auto at = leases_.begin(); at != leases_.end();) {
    const int64_t ends_ns = at->second.refreshed_ns + lives_ns;
    if (ends_ns > now_ns || at->second.ending) {  // who ends it takes it away
      if (!at->second.ending) next_ns = std::min(next_ns, ends_ns);
      ++at;
      continue;
    }
    remove(at->second.requests, at->second.owner_id);
    if (files_ != nullptr) gone_.push_back({std::move(at->second.requests), at->second.owner_id});
    ++counts_.stale_removed;
    at = leases_.erase(at);
  }
  next_expiry_ns_ = next_ns;
  return next_ns;
}

Error LockBook::refuse(const LockConflict& conflict, int64_t timeout_ms) {
  ++counts_.conflicts_total;
  conflicts_.push_back(conflict);
  if (conflicts_.size() > kMaxConflicts) conflicts_.pop_front();
  return {ErrorCode::lock_conflict, timed_out_text(timeout_ms)};
}

Result<void> LockBook::grant(const std::vector<LockRequest>& requests, const std::string& owner, int64_t timeout_ms) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  while (true) {
    const int64_t next_ns = leases_.empty() ? INT64_MAX : take_back_expired();
    const auto blocked = conflict(requests, owner);
    if (!blocked) break;
    if (timeout_ms == 0 || deadline.expired()) return std::unexpected(refuse(*blocked, timeout_ms));
    ++counts_.waiting;
    (void)changed_.wait_until(mutex_, Deadline::earlier(deadline, Deadline::at_ns(next_ns)));
    --counts_.waiting;
  }
  add(requests, owner);
  return {};
}

Result<std::string> LockBook::owner_of(std::string_view owner_lease) {
  if (leases_.size() >= kMaxLeases) return fail(ErrorCode::would_block, "too many path-lock leases");
  if (owner_lease.empty()) return random_uuid();
  const auto at = leases_.find(owner_lease);
  if (at == leases_.end() || at->second.parked || at->second.ending) {
    return fail(ErrorCode::invalid_argument, fmt::format("unknown pathlock lease ref '{}'", owner_lease));
  }
  return at->second.owner_id;
}

LeaseRef LockBook::open_lease(const std::vector<LockRequest>& requests, const std::string& owner) {
  LeaseRef ref;
  ref.lease_ref = random_uuid();
  ref.owner_id = owner;
  ref.ownership_ref = random_uuid();
  ref.covered = requests;
  for (const LockRequest& request : requests) ref.lock_paths.push_back(request.lock_path);
  const int64_t now_ns = Clock::system().monotonic_ns();
  leases_[ref.lease_ref] = {owner, ref.ownership_ref, requests, now_ns, false};
  next_expiry_ns_ = std::min(next_expiry_ns_, now_ns + 2 * expire_ms_ * kNsPerMs);
  return ref;
}

void LockBook::flush_expired() {
  if (files_ == nullptr) return;
  std::vector<Gone> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(gone_);
  }
  for (const Gone& one : gone) files_->give_back(one.requests, one.owner);
}

Result<bool> LockBook::take_files(const std::vector<LockRequest>& requests, const std::string& owner,
                                  LockConflict& blocked) {
  if (files_ == nullptr) return true;
  flush_expired();
  auto found = files_->take(requests, owner);
  if (found && !*found) return true;
  const MutexLock lock(mutex_);
  remove(requests, owner);
  if (!found) return std::unexpected(std::move(found.error()));
  blocked = std::move(**found);
  return false;
}

Result<void> LockBook::obtain(const std::vector<LockRequest>& requests, const std::string& owner, int64_t timeout_ms) {
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  int64_t pause_ms = kFirstPause_ms;
  while (true) {
    {
      const MutexLock lock(mutex_);
      const int64_t left_ms = timeout_ms == 0 ? 0 : std::max<int64_t>(deadline.remaining_ns() / kNsPerMs, 0);
      if (auto granted = grant(requests, owner, std::min(left_ms, timeout_ms)); !granted) {
        return fail(granted.error().code, timed_out_text(timeout_ms));
      }
    }
    LockConflict blocked;
    const auto taken = take_files(requests, owner, blocked);
    if (!taken) return std::unexpected(taken.error());
    if (*taken) return {};
    const MutexLock lock(mutex_);
    if (timeout_ms == 0 || deadline.expired()) return std::unexpected(refuse(blocked, timeout_ms));
    ++counts_.waiting;
    (void)changed_.wait_until(mutex_, Deadline::earlier(deadline, Deadline::in_ms(pause_ms)));
    --counts_.waiting;
    pause_ms = std::min(pause_ms + pause_ms / 2, kLongestPause_ms);
  }
}

Result<LeaseRef> LockBook::acquire(std::vector<LockRequest> requests, int64_t timeout_ms,
                                   std::string_view owner_lease) {
  requests = deduplicated(std::move(requests));
  Result<std::string> owner;
  {
    const MutexLock lock(mutex_);
    owner = owner_of(owner_lease);
  }
  if (!owner) return std::unexpected(std::move(owner.error()));
  if (auto granted = obtain(requests, *owner, timeout_ms); !granted) return std::unexpected(std::move(granted.error()));
  const MutexLock lock(mutex_);
  return open_lease(requests, *owner);
}

Result<std::optional<LeaseRef>> LockBook::try_acquire(const std::vector<LockRequest>& requests,
                                                      std::string_view owner_lease) {
  const std::vector<LockRequest> wanted = deduplicated(requests);
  Result<std::string> owner;
  {
    const MutexLock lock(mutex_);
    owner = owner_of(owner_lease);
    if (!owner) return std::unexpected(std::move(owner.error()));
    (void)take_back_expired();
    if (conflict(wanted, *owner)) return std::optional<LeaseRef>();
    add(wanted, *owner);
  }
  LockConflict blocked;
  const auto taken = take_files(wanted, *owner, blocked);
  if (!taken) return std::unexpected(taken.error());
  if (!*taken) return std::optional<LeaseRef>();
  const MutexLock lock(mutex_);
  return std::optional<LeaseRef>(open_lease(wanted, *owner));
}

Error LockBook::give_up(const std::vector<LockRequest>& requests, int64_t waited_ms) {
  const MutexLock lock(mutex_);
  const auto blocked = conflict(requests, "");
  return refuse(blocked.value_or(LockConflict()), waited_ms);
}

Result<LockBook::Hold> LockBook::hold(std::vector<LockRequest> requests, int64_t timeout_ms) {
  // A name in this process is enough, unless others read it.
  std::string owner = files_ == nullptr ? fmt::format("operation-{}", next_operation_.fetch_add(1)) : random_uuid();
  if (auto granted = obtain(requests, owner, timeout_ms); !granted) return std::unexpected(std::move(granted.error()));
  return Hold(this, std::move(owner), std::move(requests));
}

LockBook::Hold::Hold(Hold&& other) noexcept
    : book_(std::exchange(other.book_, nullptr)),
      owner_(std::move(other.owner_)),
      requests_(std::move(other.requests_)) {}

LockBook::Hold::~Hold() {
  if (book_ == nullptr) return;
  if (book_->files_ != nullptr) book_->files_->give_back(requests_, owner_);
  const MutexLock lock(book_->mutex_);
  book_->remove(requests_, owner_);
}

Result<LockBook::Lease*> LockBook::owned(std::string_view lease_ref, std::string_view ownership_ref) {
  (void)take_back_expired();
  const auto at = leases_.find(lease_ref);
  const bool gone = at == leases_.end() || at->second.parked || at->second.ending;
  if (gone || at->second.ownership_ref != ownership_ref) {
    return not_owned(lease_ref);
  }
  return &at->second;
}

void LockBook::drop_lease(std::string_view lease_ref) {
  const auto at = leases_.find(lease_ref);
  if (at == leases_.end()) return;
  remove(at->second.requests, at->second.owner_id);
  leases_.erase(at);
}

Result<void> LockBook::release(std::string_view lease_ref, std::string_view ownership_ref) {
  Gone gone;
  {
    const MutexLock lock(mutex_);
    auto lease = owned(lease_ref, ownership_ref);
    if (!lease) return std::unexpected(std::move(lease.error()));
    (*lease)->ending = true;
    if (files_ != nullptr) gone = {(*lease)->requests, (*lease)->owner_id};
  }
  // The files go first: whoever is granted the lock next finds them gone.
  if (files_ != nullptr) files_->give_back(gone.requests, gone.owner);
  const MutexLock lock(mutex_);
  drop_lease(lease_ref);
  return {};
}

Result<void> LockBook::release_selected(std::string_view lease_ref, std::string_view ownership_ref,
                                        const std::vector<std::string>& lock_paths) {
  std::string owner;
  std::vector<LockRequest> selected;
  {
    const MutexLock lock(mutex_);
    auto lease = owned(lease_ref, ownership_ref);
    if (!lease) return std::unexpected(std::move(lease.error()));
    owner = (*lease)->owner_id;
    std::erase_if((*lease)->requests, [&](const LockRequest& request) {
      const bool named = std::ranges::find(lock_paths, request.lock_path) != lock_paths.end();
      if (named) selected.push_back(request);
      return named;
    });
  }
  if (files_ != nullptr) files_->give_back(selected, owner);
  const MutexLock lock(mutex_);
  remove(selected, owner);
  return {};
}

Result<bool> LockBook::refresh(std::string_view lease_ref, std::string_view ownership_ref) {
  const MutexLock lock(mutex_);
  auto lease = owned(lease_ref, ownership_ref);
  if (!lease) return std::unexpected(std::move(lease.error()));
  (*lease)->refreshed_ns = Clock::system().monotonic_ns();
  return true;
}

Result<LeaseRef> LockBook::show(std::string_view lease_ref, std::string_view ownership_ref) {
  const MutexLock lock(mutex_);
  auto lease = owned(lease_ref, ownership_ref);
  if (!lease) return std::unexpected(std::move(lease.error()));
  LeaseRef ref;
  ref.lease_ref = lease_ref;
  ref.owner_id = (*lease)->owner_id;
  ref.covered = (*lease)->requests;
  for (const LockRequest& request : ref.covered) ref.lock_paths.push_back(request.lock_path);
  return ref;
}

Result<void> LockBook::hand_off(std::string_view lease_ref, std::string_view ownership_ref) {
  const MutexLock lock(mutex_);
  auto lease = owned(lease_ref, ownership_ref);
  if (!lease) return std::unexpected(std::move(lease.error()));
  (*lease)->parked = true;
  (*lease)->refreshed_ns = Clock::system().monotonic_ns();
  return {};
}

Result<LeaseRef> LockBook::adopt(std::string_view lease_ref, std::string_view owner_id,
                                 const std::vector<std::string>& lock_paths) {
  const MutexLock lock(mutex_);
  (void)take_back_expired();
  auto at = leases_.find(lease_ref);
  if (at == leases_.end() || !at->second.parked) {  // a hand-over of an earlier version names the owner alone
    at = std::ranges::find_if(leases_, [&](const auto& entry) {
      return lease_ref.empty() && entry.second.parked && entry.second.owner_id == owner_id;
    });
  }
  if (at == leases_.end()) {
    const bool taken = std::ranges::find(adopted_, owner_id) != adopted_.end();
    return fail(ErrorCode::lock_conflict,
                taken
                    ? fmt::format("handoff/adopt failed: pathlock handoff for owner '{}' was already adopted", owner_id)
                    : fmt::format("handoff/adopt failed: no pathlock handoff for owner '{}'", owner_id));
  }
  Lease lease = at->second;
  std::vector<std::string> known;
  for (const LockRequest& request : lease.requests) known.push_back(request.lock_path);
  std::vector<std::string> claimed = lock_paths;
  std::ranges::sort(known);
  std::ranges::sort(claimed);
  if (lease.owner_id != owner_id || known != claimed) {
    return fail(ErrorCode::lock_conflict,
                fmt::format("handoff/adopt failed: pathlock handoff for owner '{}' does not match", owner_id));
  }
  leases_.erase(at);
  adopted_.emplace_back(owner_id);
  if (adopted_.size() > kMaxAdopted) adopted_.pop_front();
  return open_lease(lease.requests, lease.owner_id);
}

Result<void> LockBook::check_covers(std::string_view lease_ref, const std::vector<LockRequest>& requests) {
  const MutexLock lock(mutex_);
  (void)take_back_expired();
  const auto at = leases_.find(lease_ref);
  if (at == leases_.end() || at->second.parked) {
    return lease_error(fmt::format("unknown pathlock lease ref '{}'", lease_ref));
  }
  const auto covers = [](const LockRequest& have, const LockRequest& want) {
    if (have.tree) return have.path == want.path || is_below(want.path, have.path);
    return !want.tree && have.path == want.path;
  };
  for (const LockRequest& want : requests) {
    const bool covered =
        std::ranges::any_of(at->second.requests, [&](const LockRequest& have) { return covers(have, want); });
    if (!covered) {
      return lease_error(fmt::format("pathlock lease ref '{}' does not cover the requested operation", lease_ref));
    }
  }
  at->second.refreshed_ns = Clock::system().monotonic_ns();  // who works under a lease lives
  return {};
}

Result<bool> LockBook::is_locked(const std::string& path) {
  {
    const MutexLock lock(mutex_);
    (void)take_back_expired();
    if (conflict(LockRequest{path, false, ""}, "")) return true;
  }
  if (files_ == nullptr) return false;
  return files_->is_locked(path);
}

LockReport LockBook::report() {
  const MutexLock lock(mutex_);
  (void)take_back_expired();
  LockReport report = counts_;
  report.active = leases_.size();
  if (files_ != nullptr) report.stale_removed += files_->stale_removed();
  report.conflicts.assign(conflicts_.begin(), conflicts_.end());
  return report;
}

uint64_t LockBook::changes() {
  const MutexLock lock(mutex_);
  return changes_;
}

void LockBook::wait_for_change(uint64_t seen, Deadline deadline) {
  const MutexLock lock(mutex_);
  while (changes_ == seen) {
    if (!changed_.wait_until(mutex_, deadline)) return;
  }
}

void LockBook::wake() {
  const MutexLock lock(mutex_);
  ++changes_;
  changed_.notify_all();
}

}  // namespace ragfs::python
