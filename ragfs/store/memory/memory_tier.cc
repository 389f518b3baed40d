#include "ragfs/store/memory/memory_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <thread>

namespace ragfs {

namespace {

constexpr uint64_t kMostExpiryMs = (uint64_t{1} << 40) - 1;
constexpr uint64_t kLeastShardBytes = uint64_t{2} << 20;  // smaller shards would evict by chance, not by use
constexpr uint64_t kLeastShardObjects = 64;
constexpr uint64_t kLeastEntryBytes = 96;
constexpr uint64_t kScatteredShare = 16;  // of the capacity: more than this in scattered free cells is worth moving
constexpr size_t kMostVictims = 8;        // taken out under one lock
constexpr size_t kLooksAtAShard = 64;     // for victims among one owner's objects, 64 of anybody's a look
constexpr size_t kMostLooksAmongOwn = 512;
constexpr size_t kPatientRounds = 8;  // through all shards, before the least used of a few entries must go

uint32_t pick_shards(const MemoryTierConfig& config) {
  if (config.shards != 0) return config.shards;
  const uint64_t for_cpus = std::bit_ceil(std::max(4U * std::thread::hardware_concurrency(), 4U));
  uint64_t most = std::max<uint64_t>(config.capacity_bytes / kLeastShardBytes, 1);
  if (config.max_objects != 0) most = std::min(most, std::max<uint64_t>(config.max_objects / kLeastShardObjects, 1));
  return static_cast<uint32_t>(std::min({for_cpus, std::bit_floor(most), uint64_t{MemoryTierConfig::kMostShards}}));
}

void copy_value(Entry* entry, const MemoryTier::Item& item) {
  if (!item.head.empty()) std::memcpy(entry->value(), item.head.data(), item.head.size());
  if (!item.tail.empty()) std::memcpy(entry->value() + item.head.size(), item.tail.data(), item.tail.size());
}

}  // namespace

// --- configuration, making and ending ---

Result<void> MemoryTierConfig::validate() const {
  if (capacity_bytes < kLeastCapacityBytes || capacity_bytes > kMostCapacityBytes) {
    return fail(ErrorCode::config, fmt::format("capacity_bytes is {}; allowed: {} to {}", capacity_bytes,
                                               kLeastCapacityBytes, kMostCapacityBytes));
  }
  if (max_object_bytes == 0 || max_object_bytes > kMostObjectBytes) {
    return fail(ErrorCode::config,
                fmt::format("max_object_bytes is {}; allowed: 1 to {}", max_object_bytes, kMostObjectBytes));
  }
  if (shards > kMostShards || (shards != 0 && !std::has_single_bit(shards))) {
    return fail(ErrorCode::config,
                fmt::format("shards is {}; allowed: 0 (by itself) or a power of two up to {}", shards, kMostShards));
  }
  if (owner_share_percent < 1 || owner_share_percent > 100) {
    return fail(ErrorCode::config, fmt::format("owner_share_percent is {}; allowed: 1 to 100", owner_share_percent));
  }
  if (clock == nullptr) return fail(ErrorCode::config, "clock is not set");
  return {};
}

Result<std::unique_ptr<MemoryTier>> MemoryTier::create(const MemoryTierConfig& config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  const uint64_t max_object = std::min(config.max_object_bytes, config.capacity_bytes / 8);
  Result<SlabHeap::Ref> heap = SlabHeap::create(config.capacity_bytes, max_object + sizeof(Entry));
  if (!heap) return std::unexpected(heap.error());
  auto tier = std::unique_ptr<MemoryTier>(new MemoryTier(config, std::move(*heap)));
  tier->max_object_bytes_ = max_object;
  const uint32_t shards = pick_shards(config);
  size_t index_bytes = tier->shares_.counts() ? OwnerShare::memory_bytes() : 0;
  for (uint32_t i = 0; i < shards; ++i) {
    // Twice an even share: shards are never filled quite evenly.
    Result<EntryTable> table = EntryTable::create(2 * config.capacity_bytes / kLeastEntryBytes / shards);
    if (!table) return std::unexpected(table.error());
    index_bytes += table->memory_bytes();
    tier->shards_.push_back(std::make_unique<MemoryShard>(std::move(*table)));
  }
  tier->heap_->charge_outside(static_cast<int64_t>(index_bytes));
  tier->index_bytes_ = static_cast<int64_t>(index_bytes);
  return tier;
}

MemoryTier::MemoryTier(const MemoryTierConfig& config, SlabHeap::Ref heap)
    : config_(config),
      start_ns_(config.clock->monotonic_ns()),
      heap_(std::move(heap)),
      shares_(config.owner_share_percent < 100 ? config.owner_of : nullptr,
              config.capacity_bytes / 100 * config.owner_share_percent) {}

MemoryTier::~MemoryTier() { clear(); }

// --- time: milliseconds since the tier began, from 1, because an entry has 40 bits for it and 0 is never ---

uint64_t MemoryTier::now_ms() const noexcept {
  return static_cast<uint64_t>(config_.clock->monotonic_ns() - start_ns_) / 1'000'000 + 1;
}

uint64_t MemoryTier::expiry_ms(int64_t expires_at_ns) const noexcept {
  if (expires_at_ns == 0) return 0;
  if (expires_at_ns <= start_ns_) return 1;
  return std::min(static_cast<uint64_t>(expires_at_ns - start_ns_) / 1'000'000 + 1, kMostExpiryMs);
}

bool MemoryTier::is_expired(const Entry* entry) const noexcept {
  return entry->expires_ms() != 0 && entry->expires_ms() <= now_ms();
}

// --- reading ---

std::optional<Bytes> MemoryTier::get(std::string_view key, uint64_t hash) {
  MemoryShard& shard = shard_for(hash);
  Entry* entry = shard.find(key, hash);
  if (entry == nullptr) {
    counters_.add(MemoryTierCounters::kMisses);
    return std::nullopt;
  }
  if (is_expired(entry)) {
    if (shard.unlink_exact(entry)) forget(entry);
    entry->drop_ref();
    counters_.add(MemoryTierCounters::kExpired);
    counters_.add(MemoryTierCounters::kMisses);
    return std::nullopt;
  }
  entry->count_hit();
  counters_.add(MemoryTierCounters::kHits);
  return Bytes::adopt(entry->value(), entry->value_size(), entry);
}

Bytes MemoryTier::get_by_hash(uint64_t hash) noexcept {
  Entry* entry = shard_for(hash).find_by_hash(hash);
  if (entry == nullptr) return {};
  if (is_expired(entry)) {
    entry->drop_ref();
    return {};
  }
  entry->count_hit();
  counters_.add(MemoryTierCounters::kHits);
  return Bytes::adopt(entry->value(), entry->value_size(), entry);
}

bool MemoryTier::contains(std::string_view key, uint64_t hash) {
  Entry* entry = shard_for(hash).find(key, hash);
  if (entry == nullptr) return false;
  const bool there = !is_expired(entry);
  entry->drop_ref();
  return there;
}

// --- writing ---

Result<void> MemoryTier::check(const Item& item) {
  if (item.key.empty() || item.key.size() > Entry::kMaxKeyBytes) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("a key of {} bytes; allowed: 1 to {}", item.key.size(), Entry::kMaxKeyBytes));
  }
  // Each part is compared alone first, so that the sum cannot wrap.
  const uint64_t most = max_object_bytes_;
  if (item.head.size() > most || item.tail.size() > most ||
      item.key.size() + item.head.size() + item.tail.size() > most) {
    return reject(item, ErrorCode::too_large);
  }
  return {};
}

Result<void> MemoryTier::reject(const Item& item, ErrorCode code) {
  // An older value must not survive a put that failed.
  erase(item.key, item.hash);
  if (code == ErrorCode::too_large) {
    counters_.add(MemoryTierCounters::kRejectedTooLarge);
    return fail(code, fmt::format("{} + {} + {} bytes; at most {} are taken", item.key.size(), item.head.size(),
                                  item.tail.size(), max_object_bytes_));
  }
  counters_.add(MemoryTierCounters::kRejectedFull);
  return fail(code, fmt::format("no room for {} bytes: readers hold {} of {}", item.head.size() + item.tail.size(),
                                heap_->detached_bytes(), config_.capacity_bytes));
}

void* MemoryTier::allocate(size_t bytes, std::string_view key) {
  void* cell = heap_->allocate(bytes);
  // Enough to empty slabs of another class even if all that is evicted lies scattered; then readers must be in the way.
  const uint64_t most_evicted = 4 * bytes + config_.capacity_bytes / 4;
  for (uint64_t evicted = 0; cell == nullptr && evicted <= most_evicted;) {
    const bool scattered = heap_->scattered_bytes() > config_.capacity_bytes / kScatteredShare;
    if (!scattered || !drain_one_slab()) {
      const size_t won = evict_some(bytes, key);
      if (won == 0 && !drain_one_slab()) return heap_->allocate(bytes);
      evicted += won;
    }
    cell = heap_->allocate(bytes);
  }
  return cell;
}

Entry* MemoryTier::make_entry(const Item& item) {
  const size_t value_bytes = item.head.size() + item.tail.size();
  void* cell = allocate(Entry::bytes_for(item.key.size(), value_bytes), item.key);
  if (cell == nullptr) return nullptr;
  Entry* entry = Entry::begin(cell, heap_.get(), item.key, item.hash, value_bytes,
                              expiry_ms(item.options.expires_at_ns), &SlabHeap::release_entry);
  if (item.options.preferred) entry->set_state(Entry::kPreferred);
  copy_value(entry, item);
  return entry;
}

Result<void> MemoryTier::put(const Item& item) {
  if (auto good = check(item); !good) return good;
  enforce_object_limit(item.key);
  Entry* entry = make_entry(item);
  if (entry == nullptr) return reject(item, ErrorCode::full);
  const size_t bytes = entry->bytes();
  auto done = finish_link(shard_for(item.hash).link(entry), entry, item.key, bytes);
  if (!done) return reject(item, ErrorCode::full);
  heap_->trim();
  return {};
}

Result<bool> MemoryTier::put_unless_changed(const Item& item, const ChangeMarks& marks, uint64_t ticket) {
  if (marks.changed_since(item.hash, ticket)) return false;
  if (item.key.size() + item.head.size() + item.tail.size() > max_object_bytes_) {
    return fail(ErrorCode::too_large, "larger than the memory tier takes");
  }
  enforce_object_limit(item.key);
  Entry* entry = make_entry(item);
  if (entry == nullptr) return fail(ErrorCode::full, "readers hold too much");
  const size_t bytes = entry->bytes();
  MemoryShard& shard = shard_for(item.hash);
  MemoryShard::Linked linked;
  {
    const SpinLockGuard guard(shard.lock());
    if (!marks.changed_since(item.hash, ticket)) linked = shard.link_locked(entry);
  }
  const bool stored = finish_link(linked, entry, item.key, bytes).has_value();
  heap_->trim();
  return stored;
}

Result<void> MemoryTier::finish_link(const MemoryShard::Linked& linked, Entry* entry, std::string_view key,
                                     size_t bytes) {
  if (linked.index_bytes != 0) {
    heap_->charge_outside(linked.index_bytes);
    index_bytes_.fetch_add(linked.index_bytes, std::memory_order_relaxed);
  }
  if (!linked.done) {
    entry->drop_ref();
    return fail(ErrorCode::full, "no memory for the index");
  }
  shares_.add(key, static_cast<int64_t>(bytes));
  if (linked.replaced != nullptr) {
    shares_.add(key, -static_cast<int64_t>(linked.replaced->bytes()));
    heap_->detach(linked.replaced);
    counters_.add(MemoryTierCounters::kUpdates);
  } else {
    objects_.fetch_add(1, std::memory_order_relaxed);
    counters_.add(MemoryTierCounters::kInserts);
  }
  return {};
}

void MemoryTier::forget(Entry* entry) noexcept {
  objects_.fetch_sub(1, std::memory_order_relaxed);
  shares_.add(entry->key(), -static_cast<int64_t>(entry->bytes()));
  heap_->detach(entry);
}

bool MemoryTier::erase(std::string_view key, uint64_t hash) {
  Entry* entry = shard_for(hash).unlink(key, hash);
  if (entry == nullptr) return false;
  forget(entry);
  counters_.add(MemoryTierCounters::kErases);
  heap_->trim();
  return true;
}

// --- several as one ---

Result<void> MemoryTier::put_atomic(std::span<const Item> items) {
  Result<void> result;
  if (items.size() > kMostAtomicItems) {
    result = fail(ErrorCode::too_large, fmt::format("{} items; at most {} at once", items.size(), kMostAtomicItems));
  }
  std::array<Entry*, kMostAtomicItems> entries{};
  size_t made = 0;
  for (size_t i = 0; i < items.size() && result.has_value(); ++i) {
    const auto named_again = [&](const Item& later) { return later.key == items[i].key; };
    result = check(items[i]);
    if (!result || std::any_of(items.begin() + static_cast<std::ptrdiff_t>(i) + 1, items.end(), named_again)) continue;
    enforce_object_limit(items[i].key);
    entries[made] = make_entry(items[i]);
    if (entries[made] == nullptr) {
      result = reject(items[i], ErrorCode::full);
    } else {
      ++made;
    }
  }
  if (result.has_value()) {
    result = link_all(std::span(entries).first(made));
  } else {
    for (size_t i = 0; i < made; ++i) entries[i]->drop_ref();
  }
  if (!result) {
    for (const Item& item : items) erase(item.key, item.hash);
  }
  return result;
}

// The locks of all shards concerned are taken in the order of their addresses. All old values leave before the first
// new one comes: whoever has seen a new one then finds the other keys new as well, or absent, and an absent key is
// looked up again under the lock.
Result<void> MemoryTier::link_all(std::span<Entry* const> entries) RAGFS_NO_THREAD_SAFETY_ANALYSIS {
  std::array<MemoryShard*, kMostAtomicItems> shards{};
  for (size_t i = 0; i < entries.size(); ++i) shards[i] = &shard_for(entries[i]->hash());
  const auto shards_end = shards.begin() + static_cast<std::ptrdiff_t>(entries.size());
  std::sort(shards.begin(), shards_end);
  const auto distinct_end = std::unique(shards.begin(), shards_end);

  std::array<MemoryShard::Linked, kMostAtomicItems> linked{};
  for (Entry* entry : entries) entry->add_ref();  // its key is needed after it was linked
  for (auto shard = shards.begin(); shard != distinct_end; ++shard) (*shard)->lock().lock();
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry* entry = entries[i];
    Entry* old_entry = shard_for(entry->hash()).unlink_locked(entry->key(), entry->hash());
    linked[i].replaced = old_entry;
    if (old_entry != nullptr) entry->set_frequency(old_entry->frequency());
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const MemoryShard::Linked now = shard_for(entries[i]->hash()).link_locked(entries[i]);
    linked[i].done = now.done;
    linked[i].index_bytes = now.index_bytes;
  }
  for (auto shard = shards.begin(); shard != distinct_end; ++shard) (*shard)->lock().unlock();

  Result<void> result;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool lost_old = !linked[i].done && linked[i].replaced != nullptr;
    if (lost_old) forget(linked[i].replaced);
    if (auto done = finish_link(linked[i], entries[i], entries[i]->key(), entries[i]->bytes()); !done) result = done;
    entries[i]->drop_ref();
  }
  return result;
}

Result<uint64_t> MemoryTier::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                                      Deadline deadline) {
  uint64_t erased = 0;
  std::vector<Entry*> pinned;
  for (const auto& shard : shards_) {
    size_t bucket = 0;
    while (shard->collect(bucket, pinned)) {
      for (Entry* entry : pinned) {
        if (covered(entry->key(), entry->value_view()) && shard->unlink_exact(entry)) {
          forget(entry);
          ++erased;
        }
        entry->drop_ref();
      }
      pinned.clear();
      if (deadline.expired()) {
        counters_.add(MemoryTierCounters::kErases, erased);
        return fail(ErrorCode::timeout, fmt::format("the sweep was cut off after {} objects were erased", erased));
      }
    }
  }
  counters_.add(MemoryTierCounters::kErases, erased);
  heap_->trim();
  return erased;
}

EvictedObject MemoryTier::describe(const Entry& entry) const noexcept {
  const auto expires_ms = static_cast<int64_t>(entry.expires_ms());
  return {.key = entry.key(),
          .hash = entry.hash(),
          .value = entry.value_view(),
          .expires_at_ns = expires_ms == 0 ? 0 : start_ns_ + expires_ms * 1'000'000,
          .preferred = (entry.state() & Entry::kPreferred) != 0,
          .touched = entry.in_main() || entry.frequency() > 0};
}

void MemoryTier::visit(const std::function<bool(const EvictedObject&)>& visit) {
  std::vector<Entry*> pinned;
  bool go_on = true;
  for (const auto& shard : shards_) {
    size_t bucket = 0;
    while (go_on && shard->collect(bucket, pinned)) {
      for (Entry* entry : pinned) {
        if (go_on && !is_expired(entry)) go_on = visit(describe(*entry));
        entry->drop_ref();
      }
      pinned.clear();
    }
  }
}

void MemoryTier::visit_one(std::string_view key, uint64_t hash,
                           const std::function<void(const EvictedObject&)>& visit) {
  Entry* entry = shard_for(hash).find(key, hash);
  if (entry == nullptr) return;
  if (!is_expired(entry)) visit(describe(*entry));
  entry->drop_ref();
}

void MemoryTier::clear() {
  const auto all = [](std::string_view, std::string_view) { return true; };
  if (auto erased = erase_if(all, Deadline::never()); !erased) return;
  heap_->purge_empty();
}

// --- making room ---

size_t MemoryTier::take_victims(uint64_t want_bytes, std::span<Entry*> victims) {
  const uint64_t now = now_ms();
  // Every look without a victim uses up hits that somebody made, so a put pays for few of them on average.
  for (size_t tries = 0; tries < kPatientRounds * shards_.size(); ++tries) {
    const uint64_t turn = next_victim_.fetch_add(1, std::memory_order_relaxed);
    const bool last_round = tries >= (kPatientRounds - 1) * shards_.size();
    MemoryShard& shard = *shards_[turn & (shards_.size() - 1)];
    if (const size_t count = shard.evict(now, want_bytes, last_round, {}, victims); count != 0) return count;
  }
  return 0;
}

// Each look sends what others own round, so a shard is stayed with: what was passed is not met again soon, and a put
// pays for few of many looks on average.
size_t MemoryTier::take_own_victims(std::string_view key, uint64_t want_bytes, std::span<Entry*> victims) {
  const uint64_t now = now_ms();
  const uint64_t first = next_victim_.fetch_add(1, std::memory_order_relaxed);
  for (size_t tries = 0; tries < kMostLooksAmongOwn; ++tries) {
    const bool impatient = tries % kLooksAtAShard >= kPatientRounds;
    MemoryShard& shard = *shards_[(first + tries / kLooksAtAShard) & (shards_.size() - 1)];
    const size_t count = shard.evict(now, want_bytes, impatient, {&shares_, key}, victims);
    if (count != 0) return count;
  }
  return 0;
}

size_t MemoryTier::evict_some(uint64_t want_bytes, std::string_view key) {
  const uint64_t ticket = config_.sink == nullptr ? 0 : config_.sink->before_eviction();
  std::array<Entry*, kMostVictims> victims;
  size_t count = 0;
  if (shares_.is_over(key)) {
    count = take_own_victims(key, want_bytes, victims);
    counters_.add(MemoryTierCounters::kShareEvictions, count);
  }
  // One that finds none of its own behind a great many of others takes one of theirs.
  if (count == 0) count = take_victims(want_bytes, victims);
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    bytes += victims[i]->bytes();
    if (config_.sink != nullptr && !is_expired(victims[i])) config_.sink->evicted(describe(*victims[i]), ticket);
    forget(victims[i]);
  }
  counters_.add(MemoryTierCounters::kEvictions, count);
  return bytes;
}

void MemoryTier::enforce_object_limit(std::string_view key) {
  if (config_.max_objects == 0) return;
  const auto most = static_cast<int64_t>(config_.max_objects);
  while (objects_.load(std::memory_order_relaxed) >= most && evict_some(1, key) != 0) {
  }
}

bool MemoryTier::drain_one_slab() {
  if (heap_->scattered_bytes() < drain_again_from_.load(std::memory_order_relaxed)) return false;
  if (draining_.exchange(true, std::memory_order_acquire)) return false;
  bool emptied = false;
  if (const auto drain = heap_->begin_drain(); drain.has_value()) {
    for (uint32_t i = 0; i < drain->cells; ++i) {
      auto* entry = reinterpret_cast<Entry*>(drain->first_cell + i * drain->cell_bytes);
      if (!entry->try_add_ref()) continue;  // free
      // Not in the index: being filled by a put, or left to its last readers.
      if ((entry->state() & Entry::kIndexed) != 0) move_elsewhere(entry);
      entry->drop_ref();
    }
    emptied = heap_->end_drain(*drain);
  }
  // Readers hold some of it, or there was nothing to win: not again before more is scattered.
  drain_again_from_ = emptied ? 0 : heap_->scattered_bytes() + heap_->slab_bytes();
  draining_.store(false, std::memory_order_release);
  return emptied;
}

void MemoryTier::move_elsewhere(Entry* entry) {
  void* cell = heap_->allocate(entry->bytes());
  if (cell == nullptr) return;
  Entry* copy = Entry::begin(cell, heap_.get(), entry->key(), entry->hash(), entry->value_size(), entry->expires_ms(),
                             &SlabHeap::release_entry);
  std::memcpy(copy->value(), entry->value(), entry->value_size());
  copy->note().store(entry->note().load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (!shard_for(entry->hash()).relocate(entry, copy)) {
    copy->drop_ref();
    return;
  }
  heap_->detach(entry);
  counters_.add(MemoryTierCounters::kRelocations);
}

// --- figures ---

MemoryTierStats MemoryTier::stats() const {
  using C = MemoryTierCounters;
  MemoryTierStats stats;
  stats.hits = counters_.sum(C::kHits);
  stats.misses = counters_.sum(C::kMisses);
  stats.expired = counters_.sum(C::kExpired);
  stats.inserts = counters_.sum(C::kInserts);
  stats.updates = counters_.sum(C::kUpdates);
  stats.erases = counters_.sum(C::kErases);
  stats.evictions = counters_.sum(C::kEvictions);
  stats.share_evictions = counters_.sum(C::kShareEvictions);
  stats.rejected_too_large = counters_.sum(C::kRejectedTooLarge);
  stats.rejected_full = counters_.sum(C::kRejectedFull);
  stats.relocations = counters_.sum(C::kRelocations);
  stats.objects = static_cast<uint64_t>(std::max<int64_t>(objects_.load(std::memory_order_relaxed), 0));
  stats.capacity_bytes = config_.capacity_bytes;
  stats.resident_bytes = heap_->resident_bytes();
  stats.index_bytes = static_cast<uint64_t>(index_bytes_.load(std::memory_order_relaxed));
  stats.detached_bytes = heap_->detached_bytes();
  return stats;
}

}  // namespace ragfs
