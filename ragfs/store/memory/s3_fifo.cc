#include "ragfs/store/memory/s3_fifo.h"

#include <algorithm>

namespace ragfs {

namespace {

constexpr uint64_t kSmallShare = 10;  // the small queue holds one part in so many
constexpr uint8_t kHitsToMove = 2;    // from the small queue to the main one
constexpr int kMostLookedAt = 64;     // in one call
constexpr size_t kFewestGhosts = 64;

bool is_pinned(const Entry* entry) { return entry->refs() > 1; }
bool is_expired(const Entry* entry, uint64_t now_ms) {
  return entry->expires_ms() != 0 && entry->expires_ms() <= now_ms;
}
bool is_preferred(const Entry* entry) { return (entry->state() & Entry::kPreferred) != 0; }

}  // namespace

void S3Fifo::Queue::push(Entry* entry) noexcept {
  entry->prev = nullptr;
  entry->next = newest;
  (newest != nullptr ? newest->prev : oldest) = entry;
  newest = entry;
  ++count;
  bytes += entry->bytes();
}

void S3Fifo::Queue::remove(Entry* entry) noexcept {
  (entry->prev != nullptr ? entry->prev->next : newest) = entry->next;
  (entry->next != nullptr ? entry->next->prev : oldest) = entry->prev;
  --count;
  bytes -= entry->bytes();
}

void S3Fifo::insert(Entry* entry) {
  if (ghosts_.take(entry->hash())) entry->set_state(entry->state() | Entry::kInMain);
  queue_of(entry).push(entry);
}

void S3Fifo::replace(Entry* old_entry, Entry* entry) noexcept {
  entry->set_frequency(old_entry->frequency());
  entry->set_state(old_entry->state());
  Queue& queue = queue_of(old_entry);
  entry->prev = old_entry->prev;
  entry->next = old_entry->next;
  (entry->prev != nullptr ? entry->prev->next : queue.newest) = entry;
  (entry->next != nullptr ? entry->next->prev : queue.oldest) = entry;
}

void S3Fifo::renew(Entry* old_entry, Entry* entry) noexcept {
  if (old_entry->in_main()) entry->set_state(entry->state() | Entry::kInMain);
  entry->set_frequency(old_entry->frequency());
  queue_of(old_entry).remove(old_entry);
  queue_of(entry).push(entry);
}

void S3Fifo::remove(Entry* entry) noexcept { queue_of(entry).remove(entry); }

void S3Fifo::move_to_main(Entry* entry, uint8_t frequency) noexcept {
  queue_of(entry).remove(entry);
  entry->set_frequency(frequency);
  entry->set_state(entry->state() | Entry::kInMain);
  main_.push(entry);
}

bool S3Fifo::takes_small(const EvictionScope& scope, int passed_in_small, int passed_in_main) const noexcept {
  // The last entry of the small queue has not had its chance yet, unless there is nothing else.
  const bool is_due = main_.count == 0 || (small_.count > 1 && small_.bytes * kSmallShare > bytes());
  if (scope.shares == nullptr) return is_due;
  if (is_due) return passed_in_small < kMostLookedAt / 2 || main_.count == 0;
  return passed_in_main >= kMostLookedAt / 2 && small_.count != 0;
}

Entry* S3Fifo::evict(uint64_t now_ms, bool at_any_rate, const EvictionScope& scope) {
  Entry* least_used = nullptr;
  int passed_in_small = 0;
  int passed_in_main = 0;
  for (int looked_at = 0; looked_at < kMostLookedAt && size() != 0; ++looked_at) {
    const bool in_small = takes_small(scope, passed_in_small, passed_in_main);
    Queue& queue = in_small ? small_ : main_;
    Entry* entry = queue.oldest;
    if (entry->prev != nullptr) Entry::prefetch(entry->prev);
    if (!scope.covers(entry->key())) {
      queue.remove(entry);
      queue.push(entry);
      ++(in_small ? passed_in_small : passed_in_main);
      continue;
    }
    if (in_small ? evict_from_small(entry, now_ms) : evict_from_main(entry, now_ms)) return entry;
    if (!is_pinned(entry) && (least_used == nullptr || entry->frequency() < least_used->frequency())) {
      least_used = entry;
    }
  }
  if (!at_any_rate || least_used == nullptr) return nullptr;
  main_.remove(least_used);
  return least_used;
}

bool S3Fifo::evict_from_small(Entry* entry, uint64_t now_ms) {
  if (!is_expired(entry, now_ms)) {
    if (is_preferred(entry)) {
      move_to_main(entry, Entry::kMaxFrequency);
      return false;
    }
    if (is_pinned(entry) || entry->frequency() >= kHitsToMove) {
      move_to_main(entry, 0);
      return false;
    }
    ghosts_.add(entry->hash(), std::max(size(), kFewestGhosts));
  }
  small_.remove(entry);
  return true;
}

bool S3Fifo::evict_from_main(Entry* entry, uint64_t now_ms) {
  const uint8_t frequency = entry->frequency();
  if (is_expired(entry, now_ms) || (frequency == 0 && !is_pinned(entry))) {
    main_.remove(entry);
    return true;
  }
  move_to_main(entry, frequency == 0 ? 0 : frequency - 1);
  return false;
}

}  // namespace ragfs
