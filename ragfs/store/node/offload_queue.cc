#include "ragfs/store/node/offload_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ragfs {

bool OffloadQueue::has_room(uint64_t bytes) const {
  const MutexLock lock(mutex_);
  return !stopped_ && !released_ && items_.size() < most_records_ && bytes_ + bytes <= most_bytes_;
}

OffloadQueue::Offer OffloadQueue::offer(DiskRecord record, DiskTier& disk, const ChangeMarks& marks, uint64_t ticket) {
  const uint64_t bytes = DiskTier::bytes_of(record);
  const MutexLock lock(mutex_);
  // Under the lock that remove() takes: a change of the key either finds the record here or is seen here.
  if (marks.changed_since(record.hash, ticket)) return Offer::changed;
  if (items_.contains(record.hash)) return Offer::there;
  if (stopped_ || released_ || items_.size() >= most_records_ || bytes_ + bytes > most_bytes_) return Offer::full;
  // Places of what was removed, which nobody takes while the disk is suspended.
  if (order_.size() > 2 * items_.size() + 64) {
    std::erase_if(order_, [this](const auto& place) RAGFS_REQUIRES(mutex_) { return item_at(place) == nullptr; });
  }
  record.generation = disk.next_generation();
  order_.emplace_back(record.hash, record.generation);
  bytes_ += bytes;
  waiting_bytes_ += bytes;
  const uint64_t hash = record.hash;
  items_[hash] = {std::move(record), Clock::system().monotonic_ns(), false};
  changed_.notify_all();
  return Offer::queued;
}

std::optional<DiskRecord> OffloadQueue::find(std::string_view key, uint64_t hash) const {
  const MutexLock lock(mutex_);
  const auto found = items_.find(hash);
  if (found == items_.end() || found->second.record.key != key) return std::nullopt;
  return found->second.record;
}

void OffloadQueue::forget(std::unordered_map<uint64_t, Item>::iterator item) {
  const uint64_t bytes = DiskTier::bytes_of(item->second.record);
  bytes_ -= bytes;
  if (!item->second.taken) waiting_bytes_ -= bytes;
  items_.erase(item);
  if (items_.empty()) changed_.notify_all();
}

void OffloadQueue::remove(uint64_t hash) {
  const MutexLock lock(mutex_);
  if (const auto found = items_.find(hash); found != items_.end()) forget(found);
}

OffloadQueue::Item* OffloadQueue::item_at(const std::pair<uint64_t, uint64_t>& place) {
  const auto found = items_.find(place.first);
  if (found == items_.end() || found->second.record.generation != place.second) return nullptr;
  return &found->second;
}

size_t OffloadQueue::remove_prefixes(std::span<const std::string> prefixes) {
  const MutexLock lock(mutex_);
  size_t removed = 0;
  for (auto item = items_.begin(); item != items_.end();) {
    const auto next = std::next(item);
    const std::string& key = item->second.record.key;
    if (std::ranges::any_of(prefixes, [&](const std::string& prefix) { return key.starts_with(prefix); })) {
      forget(item);
      ++removed;
    }
    item = next;
  }
  if (items_.empty()) changed_.notify_all();
  return removed;
}

bool OffloadQueue::alive(const DiskRecord& record) const {
  const MutexLock lock(mutex_);
  const auto found = items_.find(record.hash);
  return found != items_.end() && found->second.record.generation == record.generation;
}

bool OffloadQueue::due(uint64_t most_bytes, int64_t patience_ms) {
  while (!order_.empty() && item_at(order_.front()) == nullptr) order_.pop_front();
  if (order_.empty()) return false;
  if (hurried_ || stopped_ || waiting_bytes_ >= most_bytes) return true;
  const int64_t waited_ns = Clock::system().monotonic_ns() - item_at(order_.front())->since_ns;
  return waited_ns >= patience_ms * 1'000'000;
}

std::vector<DiskRecord> OffloadQueue::take(uint64_t most_bytes, int64_t patience_ms, Deadline until) {
  std::vector<DiskRecord> batch;
  const MutexLock lock(mutex_);
  while (!due(most_bytes, patience_ms)) {
    if (stopped_ || until.expired()) return batch;
    const Deadline next = order_.empty() ? until : Deadline::earlier(until, Deadline::in_ms(patience_ms));
    changed_.wait_until(mutex_, next);
  }
  uint64_t bytes = 0;
  while (!order_.empty()) {
    Item* item = item_at(order_.front());
    if (item == nullptr) {
      order_.pop_front();
      continue;
    }
    const uint64_t more = DiskTier::bytes_of(item->record);
    if (!batch.empty() && bytes + more > most_bytes) break;
    bytes += more;
    waiting_bytes_ -= more;
    item->taken = true;
    batch.push_back(item->record);
    order_.pop_front();
  }
  return batch;
}

size_t OffloadQueue::end(const std::vector<DiskRecord>& batch) {
  const MutexLock lock(mutex_);
  size_t ended = 0;
  for (const DiskRecord& record : batch) {
    const auto found = items_.find(record.hash);
    if (found == items_.end() || found->second.record.generation != record.generation) continue;
    forget(found);
    ++ended;
  }
  if (items_.empty()) {
    hurried_ = false;
    changed_.notify_all();
  }
  return ended;
}

size_t OffloadQueue::expire(int64_t older_than_ms) {
  const MutexLock lock(mutex_);
  const int64_t before_ns = Clock::system().monotonic_ns() - older_than_ms * 1'000'000;
  size_t expired = 0;
  for (auto item = items_.begin(); item != items_.end();) {
    const auto next = std::next(item);
    if (item->second.since_ns < before_ns) {
      forget(item);
      ++expired;
    }
    item = next;
  }
  return expired;
}

void OffloadQueue::put_back(const std::vector<DiskRecord>& batch) {
  const MutexLock lock(mutex_);
  for (auto record = batch.rbegin(); record != batch.rend(); ++record) {
    Item* item = item_at({record->hash, record->generation});
    if (item == nullptr) continue;
    item->taken = false;
    waiting_bytes_ += DiskTier::bytes_of(*record);
    order_.emplace_front(record->hash, record->generation);
  }
}

void OffloadQueue::hurry() {
  const MutexLock lock(mutex_);
  hurried_ = !items_.empty();
  changed_.notify_all();
}

size_t OffloadQueue::release() {
  const MutexLock lock(mutex_);
  const size_t released = items_.size();
  released_ = true;
  items_.clear();
  order_.clear();
  bytes_ = 0;
  waiting_bytes_ = 0;
  changed_.notify_all();
  return released;
}

bool OffloadQueue::wait_empty(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (!items_.empty()) {
    if (!changed_.wait_until(mutex_, deadline) && !items_.empty()) return false;
  }
  return true;
}

void OffloadQueue::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

size_t OffloadQueue::records() const {
  const MutexLock lock(mutex_);
  return items_.size();
}

uint64_t OffloadQueue::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace ragfs
