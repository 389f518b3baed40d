// MemoryTier: a cache of byte strings in this process's memory, with a hard budget.
//
// For: the DRAM tier of the store and everything that wants one (the embedded provider, the near tier). A hit is one
// probe of a table, one reference count and no lock, no copy, no system call. Eviction is by S3-FIFO (s3_fifo.h), so a
// scan does not flush the working set. Resident memory, with tables, fragmentation and what readers still hold, stays
// within the budget (slab_heap.h). Not for: keeping anything safe (any object may be evicted at any time), or knowing
// what the bytes mean.
//
// Every key comes with its hash: 64 well-mixed bits, always the same for the same key.
// Thread-safety: all methods may be called from any thread. Bytes may outlive the tier.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/clock.h"
#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/store/memory/change_marks.h"
#include "ragfs/store/memory/eviction_sink.h"
#include "ragfs/store/memory/memory_shard.h"
#include "ragfs/store/memory/memory_stats.h"
#include "ragfs/store/memory/owner_share.h"
#include "ragfs/store/memory/slab_heap.h"

namespace ragfs {

struct MemoryTierConfig {
  static constexpr uint64_t kLeastCapacityBytes = uint64_t{1} << 20;
  static constexpr uint64_t kMostCapacityBytes = uint64_t{512} << 30;
  static constexpr uint64_t kMostObjectBytes = uint64_t{1} << 30;
  static constexpr uint32_t kMostShards = 256;

  uint64_t capacity_bytes = uint64_t{256} << 20;  // resident memory, tables included; 1 MiB to 512 GiB
  uint64_t max_objects = 0;                       // objects in all; 0 = as many as fit
  uint64_t max_object_bytes = uint64_t{16}
                              << 20;      // key and value; at most 1 GiB and an eighth of the capacity is taken
  uint32_t shards = 0;                    // power of two, at most 256; 0 = by capacity and CPUs
  const Clock* clock = &Clock::system();  // for expiry; must outlive the tier
  EvictionSink* sink = nullptr;           // is offered what is evicted; must outlive the tier
  OwnerOf owner_of = nullptr;             // tells objects' owners apart; nullptr = nobody owns anything
  uint32_t owner_share_percent = 100;     // of the capacity: above it, an owner's new objects evict its own; 1 to 100

  // Errors: config; the message names the field, its value and what is allowed.
  Result<void> validate() const;
};

class MemoryTier {
 public:
  struct PutOptions {
    int64_t expires_at_ns = 0;  // on the clock's monotonic time, in steps of 1 ms, never re-armed; 0 = never
    bool preferred = false;     // outlives others under pressure
  };
  // Key and value are borrowed for the call; the value is `head` followed by `tail`.
  struct Item {
    std::string_view key;
    uint64_t hash = 0;
    std::string_view head;
    std::string_view tail;
    PutOptions options = {};
  };

  // Errors: config (see validate()), full (no address space or memory for empty tables).
  static Result<std::unique_ptr<MemoryTier>> create(const MemoryTierConfig& config);
  ~MemoryTier();
  MemoryTier(const MemoryTier&) = delete;
  MemoryTier& operator=(const MemoryTier&) = delete;

  // The value, pinned: it stays readable and counts against the budget until the last Bytes is gone. nullopt = miss.
  std::optional<Bytes> get(std::string_view key, uint64_t hash);
  // The object that has this hash, whatever its key, or an empty Bytes. Counts as a hit when there is one.
  Bytes get_by_hash(uint64_t hash) noexcept;
  // Asks for the memory that get() will touch first; worth it a few hundred nanoseconds ahead, as in a batch.
  void prefetch(uint64_t hash) const noexcept { shard_for(hash).prefetch(hash); }
  // True if get() would hit now; counts as neither hit nor miss.
  bool contains(std::string_view key, uint64_t hash);
  // Stores or overwrites. When it fails the key is absent: never is an older value left behind a failed put.
  // Errors: invalid_argument (empty key, over 255 bytes), too_large, full (readers hold too much to make room).
  Result<void> put(const Item& item);
  // Stores a copy taken from elsewhere, unless its key was changed since `ticket` (change_marks.h); true if it was
  // stored. Errors: as put(), but the key is not made absent.
  Result<bool> put_unless_changed(const Item& item, const ChangeMarks& marks, uint64_t ticket);
  // All or none. Readers who look the keys up one after the other in any order see: only old values or misses, then
  // only new ones; a lookup that would see a mixture waits for the end. After an error, as put(), all keys are absent.
  // Errors: as put(); too_large also for more than kMostAtomicItems. A key named twice gets the later value.
  static constexpr size_t kMostAtomicItems = 8;
  Result<void> put_atomic(std::span<const Item> items);
  // True if it was there (expired or not).
  bool erase(std::string_view key, uint64_t hash);
  // Erases what `covered(key, value)` is true for; `covered` runs under no lock. Meets every object that was there all
  // the time; of those put or replaced meanwhile any. The count of erased. Errors: timeout (part of it is done).
  Result<uint64_t> erase_if(const std::function<bool(std::string_view key, std::string_view value)>& covered,
                            Deadline deadline);
  // Shows every object that was there all the time, pinned meanwhile, under no lock; of those put or erased meanwhile
  // any. Ends early when `visit` answers false.
  void visit(const std::function<bool(const EvictedObject&)>& visit);
  // Shows one object, pinned meanwhile, under no lock; nothing when it is absent. Counts as neither hit nor miss.
  void visit_one(std::string_view key, uint64_t hash, const std::function<void(const EvictedObject&)>& visit);
  // Erases everything and gives its memory back, but for what readers hold.
  void clear();

  const MemoryTierConfig& config() const noexcept { return config_; }
  // The largest key + value that put() takes.
  uint64_t max_object_bytes() const noexcept { return max_object_bytes_; }
  MemoryTierStats stats() const;

 private:
  MemoryTier(const MemoryTierConfig& config, SlabHeap::Ref heap);

  MemoryShard& shard_for(uint64_t hash) const noexcept { return *shards_[hash >> 56 & (shards_.size() - 1)]; }
  uint64_t now_ms() const noexcept;
  uint64_t expiry_ms(int64_t expires_at_ns) const noexcept;
  bool is_expired(const Entry* entry) const noexcept;

  EvictedObject describe(const Entry& entry) const noexcept;
  Result<void> check(const Item& item);
  // A filled entry with the caller's reference, or nullptr when no room could be made.
  Entry* make_entry(const Item& item);
  void* allocate(size_t bytes, std::string_view key);
  // Counts what a link did, and lets the replaced entry go.
  // `entry` is not touched when it was linked: somebody may have evicted it by now.
  Result<void> finish_link(const MemoryShard::Linked& linked, Entry* entry, std::string_view key, size_t bytes);
  // An entry that was taken out of the index for good.
  void forget(Entry* entry) noexcept;
  Result<void> reject(const Item& item, ErrorCode code);
  // Takes objects of at least `want_bytes` in all out of one shard, the next one that has any; how many.
  size_t take_victims(uint64_t want_bytes, std::span<Entry*> victims);
  // The same among those of the key's owner.
  size_t take_own_victims(std::string_view key, uint64_t want_bytes, std::span<Entry*> victims);
  // Evicts objects of at least `want_bytes` in all from the shards in turn, so that one of `key` finds room; the bytes
  // won, 0 when nothing can be.
  size_t evict_some(uint64_t want_bytes, std::string_view key);
  void enforce_object_limit(std::string_view key);
  // Moves the entries of a sparse slab elsewhere; true if that emptied it.
  bool drain_one_slab();
  void move_elsewhere(Entry* entry);
  Result<void> link_all(std::span<Entry* const> entries);

  const MemoryTierConfig config_;
  const int64_t start_ns_;
  const SlabHeap::Ref heap_;
  uint64_t max_object_bytes_ = 0;
  std::vector<std::unique_ptr<MemoryShard>> shards_;
  MemoryTierCounters counters_;
  OwnerShare shares_;
  alignas(64) std::atomic<int64_t> objects_{0};  // a racing erase may count before its put: below 0 for a moment
  std::atomic<uint64_t> next_victim_{0};
  std::atomic<int64_t> index_bytes_{0};
  std::atomic<bool> draining_{false};
  std::atomic<size_t> drain_again_from_{0};  // scattered bytes at which another try is worth it after one that failed
};

}  // namespace ragfs
