#include "ragfs/store/memory/entry_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ragfs {

namespace {

// The table is filled in steps that grow with it, so that a small one is small; a big one has huge pages.
constexpr size_t kHugeFromBytes = 4 * kHugePageBytes;

// Grows `committed` so that at least `needed` bytes of the range are usable.
bool commit_to(VirtualRange& range, size_t& committed, size_t needed) {
  if (needed <= committed) return true;
  size_t step = std::max(std::bit_floor(committed / 16), kPageBytes);
  if (committed >= kHugeFromBytes) step = kHugePageBytes - committed % kHugePageBytes;
  step = std::min(step, range.reserved_bytes() - committed);
  if (committed + step < needed || !range.commit(committed, step)) return false;
  committed += step;
  if (committed >= kHugeFromBytes && committed % kHugePageBytes == 0) range.advise(0, committed, PageSize::huge);
  return true;
}

}  // namespace

Result<EntryTable> EntryTable::create(size_t max_entries) {
  EntryTable table;
  table.bucket_limit_ = std::max<size_t>(max_entries / kEntriesPerBucket, 64);
  table.overflow_limit_ = static_cast<uint32_t>(std::min<size_t>(table.bucket_limit_ / 4 + 64, UINT32_MAX / 2));
  for (auto [range, buckets] : {std::pair{&table.range_, table.bucket_limit_},
                                std::pair{&table.overflow_range_, size_t{table.overflow_limit_}}}) {
    Result<VirtualRange> reserved = VirtualRange::reserve(buckets * sizeof(Bucket));
    if (!reserved) return std::unexpected(reserved.error());
    *range = std::move(*reserved);
    range->advise(0, range->reserved_bytes(), PageSize::small);
  }
  table.buckets_ = reinterpret_cast<Bucket*>(table.range_.base());
  table.overflow_ = reinterpret_cast<Bucket*>(table.overflow_range_.base());
  // A lookup without a lock may follow the link of a bucket that is being reused: the first pages are always there.
  if (!commit_to(table.range_, table.committed_, sizeof(Bucket)) ||
      !commit_to(table.overflow_range_, table.overflow_committed_, sizeof(Bucket))) {
    return fail(ErrorCode::full, "no memory for the index of a shard");
  }
  return table;
}

EntryTable::EntryTable(EntryTable&& other) noexcept
    : buckets_(other.buckets_),
      buckets_in_use_(other.bucket_count()),
      overflow_(other.overflow_),
      size_(other.size_),
      bucket_limit_(other.bucket_limit_),
      committed_(other.committed_),
      overflow_committed_(other.overflow_committed_),
      overflow_used_(other.overflow_used_),
      overflow_limit_(other.overflow_limit_),
      free_overflow_(std::move(other.free_overflow_)),
      range_(std::move(other.range_)),
      overflow_range_(std::move(other.overflow_range_)) {}

// --- finding ---

Entry* EntryTable::find(std::string_view key, uint64_t hash) const noexcept {
  const uint64_t tag = tag_of(hash);
  for (const Bucket* bucket = &bucket_for(hash); bucket != nullptr;) {
    const Bucket* next = nullptr;
    for (const auto& slot : bucket->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (is_link(word)) {
        next = &link_of(word);
      } else if (word != 0 && (word & ~kAddressMask) == tag && entry_of(word)->is(key, hash)) {
        return entry_of(word);
      }
    }
    bucket = next;
  }
  return nullptr;
}

std::atomic<uint64_t>* EntryTable::find_slot(uint64_t hash, uint64_t word) const noexcept {
  for (Bucket* bucket = &bucket_for(hash); bucket != nullptr;) {
    Bucket* next = nullptr;
    for (auto& slot : bucket->slots) {
      const uint64_t seen = slot.load(std::memory_order_relaxed);
      if (seen == word) return &slot;
      if (is_link(seen)) next = &link_of(seen);
    }
    bucket = next;
  }
  return nullptr;
}

bool EntryTable::contains(const Entry* entry) const noexcept {
  return find_slot(entry->hash(), word_for(entry)) != nullptr;
}

void EntryTable::collect(size_t bucket_index, std::vector<Entry*>& out) const {
  for (const Bucket* bucket = &buckets_[bucket_index]; bucket != nullptr;) {
    const Bucket* next = nullptr;
    for (const auto& slot : bucket->slots) {
      const uint64_t word = slot.load(std::memory_order_relaxed);
      if (is_link(word)) {
        next = &link_of(word);
      } else if (word != 0) {
        out.push_back(entry_of(word));
      }
    }
    bucket = next;
  }
}

// --- changing ---

uint32_t EntryTable::take_overflow_bucket() {
  if (!free_overflow_.empty()) {
    const uint32_t index = free_overflow_.back();
    free_overflow_.pop_back();
    return index;
  }
  if (overflow_used_ >= overflow_limit_ ||
      !commit_to(overflow_range_, overflow_committed_, (size_t{overflow_used_} + 1) * sizeof(Bucket))) {
    return UINT32_MAX;
  }
  return overflow_used_++;
}

bool EntryTable::insert_into(Bucket& first, uint64_t word) {
  Bucket* bucket = &first;
  while (true) {
    Bucket* next = nullptr;
    for (auto& slot : bucket->slots) {
      const uint64_t seen = slot.load(std::memory_order_relaxed);
      if (seen == 0) {
        slot.store(word, std::memory_order_release);
        return true;
      }
      if (is_link(seen)) next = &link_of(seen);
    }
    if (next == nullptr) break;
    bucket = next;
  }
  // Full: the last entry and the new one move to another bucket, and the last slot becomes the link to it.
  const uint32_t index = take_overflow_bucket();
  if (index == UINT32_MAX) return false;
  auto& last = bucket->slots[kSlots - 1];
  overflow_[index].slots[0].store(last.load(std::memory_order_relaxed), std::memory_order_release);
  overflow_[index].slots[1].store(word, std::memory_order_release);
  last.store(uint64_t{index} << 1 | kLinkBit, std::memory_order_release);
  return true;
}

bool EntryTable::insert(Entry* entry) {
  if (!insert_into(bucket_for(entry->hash()), word_for(entry))) return false;
  ++size_;
  if (size_ > bucket_count() * kEntriesPerBucket) grow();
  return true;
}

void EntryTable::replace(const Entry* old_entry, Entry* entry) noexcept {
  std::atomic<uint64_t>* slot = find_slot(old_entry->hash(), word_for(old_entry));
  if (slot != nullptr) slot->store(word_for(entry), std::memory_order_release);
}

bool EntryTable::remove(const Entry* entry) noexcept {
  std::atomic<uint64_t>* slot = find_slot(entry->hash(), word_for(entry));
  if (slot == nullptr) return false;
  slot->store(0, std::memory_order_release);
  --size_;
  shorten(bucket_for(entry->hash()));
  return true;
}

void EntryTable::shorten(Bucket& first) noexcept {
  auto& last = first.slots[kSlots - 1];
  const uint64_t link = last.load(std::memory_order_relaxed);
  if (!is_link(link)) return;
  // Only a chain's first link is looked at; longer chains are rare and shorten as their turn comes.
  Bucket& next = link_of(link);
  for (const auto& slot : next.slots) {
    if (const uint64_t word = slot.load(std::memory_order_relaxed); word != 0 && !is_link(word)) return;
  }
  auto& rest = next.slots[kSlots - 1];
  last.store(rest.exchange(0, std::memory_order_acq_rel), std::memory_order_release);
  free_overflow_.push_back(static_cast<uint32_t>(link >> 1));
}

// --- growing ---

void EntryTable::grow() {
  const size_t n = bucket_count();
  if (n >= bucket_limit_ || !commit_to(range_, committed_, (n + 1) * sizeof(Bucket))) return;
  const size_t half = std::bit_floor(n);
  split(n - half, n, half);
}

void EntryTable::clear_chain(Bucket& first) noexcept {
  for (Bucket* bucket = &first; bucket != nullptr;) {
    Bucket* next = nullptr;
    for (auto& slot : bucket->slots) {
      const uint64_t word = slot.exchange(0, std::memory_order_acq_rel);
      if (!is_link(word)) continue;
      next = &link_of(word);
      free_overflow_.push_back(static_cast<uint32_t>(word >> 1));
    }
    bucket = next;
  }
}

// What moves is put into the new bucket, then that one is made known, then it leaves the old one.
void EntryTable::split(size_t from, size_t to, uint64_t bit) {
  for (int phase = 0; phase < 2; ++phase) {
    for (Bucket* bucket = &buckets_[from]; bucket != nullptr;) {
      Bucket* next = nullptr;
      for (auto& slot : bucket->slots) {
        const uint64_t word = slot.load(std::memory_order_relaxed);
        if (is_link(word)) {
          next = &link_of(word);
        } else if (word != 0 && (entry_of(word)->hash() & bit) != 0) {
          if (phase == 1) {
            slot.store(0, std::memory_order_release);
          } else if (!insert_into(buckets_[to], word)) {
            return clear_chain(buckets_[to]);  // no memory for its chain: stay as it was
          }
        }
      }
      bucket = next;
    }
    if (phase == 0) buckets_in_use_.store(to + 1, std::memory_order_release);
  }
  shorten(buckets_[from]);
}

}  // namespace ragfs
