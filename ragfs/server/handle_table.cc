#include "ragfs/server/handle_table.h"

#include <fmt/format.h>

#include <array>

namespace ragfs::server {

Result<HandleTable::Hold> HandleTable::hold_file(PathView path, Deadline deadline) {
  const std::array request{PathLockRequest{path, PathLockKind::shared}};
  return files_.acquire(request, deadline);
}

Result<HandleTable::Hold> HandleTable::hold_trees(PathView a, PathView b, Deadline deadline) {
  const std::array requests{PathLockRequest{a, PathLockKind::subtree}, PathLockRequest{b, PathLockKind::subtree}};
  return files_.acquire(requests, deadline);
}

void HandleTable::renew(Entry& entry) {
  const int64_t lease_ns = entry.info.lease_s * 1'000'000'000;
  entry.expires_monotonic_ns = Clock::system().monotonic_ns() + lease_ns;
  entry.info.expires_at_ns = Clock::system().wall_ns() + lease_ns;
}

void HandleTable::drop_expired() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  const size_t gone =
      std::erase_if(entries_, [&](const auto& item) { return item.second.expires_monotonic_ns <= now_ns; });
  expired_total_.fetch_add(gone, std::memory_order_relaxed);
}

Result<HandleInfo> HandleTable::add(size_t owner, PathView path, int64_t flags, int64_t lease_s, uint64_t position) {
  const MutexLock lock(mutex_);
  if (entries_.size() >= max_handles_) drop_expired();
  if (entries_.size() >= max_handles_) {
    return fail(ErrorCode::full, fmt::format("{} handles are open, which is the limit; close some", max_handles_));
  }
  Entry entry;
  entry.owner = owner;
  entry.info.id = next_id_++;
  entry.info.path = Path(path);
  entry.info.flags = flags;
  entry.info.lease_s = lease_s;
  entry.info.position = position;
  renew(entry);
  HandleInfo info = entry.info;
  entries_.emplace(info.id, std::move(entry));
  return info;
}

Result<HandleTable::Entry*> HandleTable::find(size_t owner, int64_t id) {
  drop_expired();
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.owner != owner) {
    return fail(ErrorCode::not_found, fmt::format("handle {}: not open, or its lease has ended", id));
  }
  if (found->second.stale) {
    stale_total_.fetch_add(1, std::memory_order_relaxed);
    return fail(ErrorCode::stale_handle,
                fmt::format("handle {}: {} was renamed, removed or unmounted since it was opened; open it again", id,
                            found->second.info.path.text()));
  }
  return &found->second;
}

Result<HandleTable::Use> HandleTable::use(size_t owner, int64_t id, Deadline deadline) {
  Use use;
  const auto before = info(owner, id);
  if (!before) return std::unexpected(before.error());
  auto turn_name = Path::parse(fmt::format("/{}", id));
  if (!turn_name) return std::unexpected(turn_name.error());
  const std::array turn{PathLockRequest{*turn_name, PathLockKind::exact}};
  auto held_turn = turns_.acquire(turn, deadline);
  if (!held_turn) return std::unexpected(held_turn.error());
  use.turn_ = std::move(*held_turn);
  auto held_file = hold_file(before->path, deadline);
  if (!held_file) return std::unexpected(held_file.error());
  use.file_ = std::move(*held_file);
  // Looked up again: what it had to wait for may have broken it.
  const MutexLock lock(mutex_);
  auto entry = find(owner, id);
  if (!entry) return std::unexpected(entry.error());
  renew(**entry);
  use.info = (*entry)->info;
  use.table_ = this;
  return use;
}

HandleTable::Use::~Use() {
  if (turn_ && table_ != nullptr) table_->put_back(info);
}

void HandleTable::put_back(const HandleInfo& info) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(info.id);
  if (found != entries_.end()) found->second.info.position = info.position;
}

Result<void> HandleTable::close(size_t owner, int64_t id) {
  const MutexLock lock(mutex_);
  const auto entry = find(owner, id);
  if (!entry && entry.error().code != ErrorCode::stale_handle) return std::unexpected(entry.error());
  entries_.erase(id);
  return {};
}

Result<HandleInfo> HandleTable::info(size_t owner, int64_t id) {
  const MutexLock lock(mutex_);
  const auto entry = find(owner, id);
  if (!entry) return std::unexpected(entry.error());
  return (*entry)->info;
}

Result<HandleInfo> HandleTable::renew(size_t owner, int64_t id, int64_t lease_s) {
  const MutexLock lock(mutex_);
  const auto entry = find(owner, id);
  if (!entry) return std::unexpected(entry.error());
  (*entry)->info.lease_s = lease_s;
  renew(**entry);
  return (*entry)->info;
}

std::vector<HandleInfo> HandleTable::list(size_t owner) {
  std::vector<HandleInfo> out;
  const MutexLock lock(mutex_);
  drop_expired();
  for (const auto& [id, entry] : entries_) {
    if (entry.owner == owner && !entry.stale) out.push_back(entry.info);
  }
  return out;
}

void HandleTable::break_below(PathView path) {
  const MutexLock lock(mutex_);
  for (auto& [id, entry] : entries_) {
    if (entry.info.path.view().is_within(path)) entry.stale = true;
  }
}

size_t HandleTable::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace ragfs::server
