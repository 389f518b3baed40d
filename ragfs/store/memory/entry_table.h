// EntryTable: the index of one shard: hash -> entry, by linear hashing, read without a lock.
//
// For: lookups in one cache miss beside the entry itself, at any size, and growth without a pause: every fourth insert
// splits one bucket in two, in place; the table never moves. Not for: enumeration in an order.
//
// A bucket is one cache line of 8 slots: 16 bits of the hash and the entry's address. One that overflows turns its last
// slot into a link to another bucket. A slot is written by whoever holds the shard's lock, and read by anybody:
//
//   pin without a lock (find_unlocked):           remove (under the lock):
//     1 w = slot            (acquire)               a slot = 0                (release)
//     2 entry(w) + 1 ref, if it has any (acquire)   b entry - the index's ref (acq_rel)
//     3 slot == w ?         (acquire)
//
// If 3 holds, the entry was in the index at that moment, and stays alive and constant, as it is pinned: the key can be
// compared. If the cell was freed and reused between 1 and 2, the reader pinned something else: either 3 fails, or the
// cell was put back under the very same slot and then it is in the index again. That 2 may look at a freed cell at all
// is safe because the heap never unmaps one nor moves the count in it (entry.h, slab_heap.h). An entry on its way from
// one bucket to another is in both for a moment, never in none; but a reader may look into the old bucket after it and
// into the new one before it, so only the lookup under the lock decides that a key is absent.
//
// Thread-safety: find_unlocked() and prefetch() by anybody; all else under the shard's lock.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/store/memory/entry.h"
#include "ragfs/store/memory/virtual_range.h"

namespace ragfs {

class EntryTable {
 public:
  // Room for the addresses of `max_entries`; more go into longer chains.
  static Result<EntryTable> create(size_t max_entries);
  EntryTable(EntryTable&& other) noexcept;
  EntryTable& operator=(EntryTable&&) = delete;

  void prefetch(uint64_t hash) const noexcept { __builtin_prefetch(&bucket_for(hash), 0); }
  // The entry, pinned (the caller drops the reference), or nullptr: not there, or not found this way.
  Entry* find_unlocked(std::string_view key, uint64_t hash) const noexcept {
    return find_unlocked(hash, [key](const Entry& entry) { return entry.has_key(key); });
  }
  // The same for the first entry of this hash that `wanted` is true of.
  template <typename Wanted>
  Entry* find_unlocked(uint64_t hash, const Wanted& wanted) const noexcept;

  // --- under the shard's lock ---
  // The entry, not pinned.
  Entry* find(std::string_view key, uint64_t hash) const noexcept;
  // `entry` is the one in the index under its key (not merely an equal one).
  bool contains(const Entry* entry) const noexcept;
  // The key must be absent. False when memory for a chain ran out.
  bool insert(Entry* entry);
  // `old_entry` must be in the index; `entry` has the same key and hash.
  void replace(const Entry* old_entry, Entry* entry) noexcept;
  // False when it is not in the index.
  bool remove(const Entry* entry) noexcept;
  // Adds the entries of bucket `bucket` to `out`. Buckets only ever split towards higher numbers, so going through all
  // of them from 0 to bucket_count() meets everything that was there from beginning to end.
  void collect(size_t bucket, std::vector<Entry*>& out) const;

  size_t size() const noexcept { return size_; }
  size_t bucket_count() const noexcept { return buckets_in_use_.load(std::memory_order_relaxed); }
  // Memory of the index now; what growth adds is known by asking before and after.
  size_t memory_bytes() const noexcept { return committed_ + overflow_committed_; }

 private:
  static constexpr size_t kSlots = 8;
  static constexpr size_t kEntriesPerBucket = 5;  // on average, before the next split
  static constexpr uint64_t kLinkBit = 1;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

  struct alignas(64) Bucket {
    std::atomic<uint64_t> slots[kSlots];
  };

  EntryTable() = default;

  static uint64_t tag_of(uint64_t hash) noexcept { return (hash >> 32) << 48; }
  static uint64_t word_for(const Entry* entry) noexcept {
    return tag_of(entry->hash()) | reinterpret_cast<uint64_t>(entry);
  }
  static Entry* entry_of(uint64_t word) noexcept {
    return reinterpret_cast<Entry*>(word & kAddressMask);  // NOLINT(performance-no-int-to-ptr): it shares its word
  }
  static bool is_link(uint64_t word) noexcept { return (word & kLinkBit) != 0; }
  Bucket& link_of(uint64_t word) const noexcept { return overflow_[word >> 1]; }

  Bucket& bucket_for(uint64_t hash) const noexcept;
  // The slot that holds exactly `word`, or nullptr.
  std::atomic<uint64_t>* find_slot(uint64_t hash, uint64_t word) const noexcept;
  bool insert_into(Bucket& bucket, uint64_t word);
  uint32_t take_overflow_bucket();
  // Gives the chain behind `bucket` back where it is empty.
  void shorten(Bucket& bucket) noexcept;
  void clear_chain(Bucket& first) noexcept;
  void grow();
  void split(size_t from, size_t to, uint64_t bit);

  Bucket* buckets_ = nullptr;
  std::atomic<size_t> buckets_in_use_{1};
  // What follows is not read by lookups without a lock.
  Bucket* overflow_ = nullptr;
  size_t size_ = 0;
  size_t bucket_limit_ = 0;
  size_t committed_ = 0;
  size_t overflow_committed_ = 0;
  uint32_t overflow_used_ = 0;
  uint32_t overflow_limit_ = 0;
  std::vector<uint32_t> free_overflow_;
  VirtualRange range_;
  VirtualRange overflow_range_;
};

inline EntryTable::Bucket& EntryTable::bucket_for(uint64_t hash) const noexcept {
  // n buckets: those below n - 2^k have been split on bit k, the others not yet.
  const size_t n = buckets_in_use_.load(std::memory_order_acquire);
  const size_t half = std::bit_floor(n);
  size_t index = hash & (2 * half - 1);
  if (index >= n) index -= half;
  return buckets_[index];
}

template <typename Wanted>
Entry* EntryTable::find_unlocked(uint64_t hash, const Wanted& wanted) const noexcept {
  const uint64_t tag = tag_of(hash);
  const Bucket* bucket = &bucket_for(hash);
  // A chain that changes under our feet might lead in circles: two buckets are enough for nearly all keys.
  for (int hops = 0; hops < 2; ++hops) {
    const Bucket* next = nullptr;
    for (const auto& slot : bucket->slots) {
      const uint64_t word = slot.load(std::memory_order_acquire);
      if (is_link(word)) {
        next = &link_of(word);
      } else if (word != 0 && (word & ~kAddressMask) == tag) {
        Entry* entry = entry_of(word);
        Entry::prefetch(entry);
        if (!entry->try_add_ref()) continue;
        if (slot.load(std::memory_order_acquire) == word && entry->hash() == hash && wanted(*entry)) return entry;
        entry->drop_ref();
      }
    }
    if (next == nullptr) return nullptr;
    bucket = next;
  }
  return nullptr;
}

}  // namespace ragfs
