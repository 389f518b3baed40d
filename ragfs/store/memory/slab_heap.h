// SlabHeap: the memory of a memory tier's entries, bounded by construction.
//
// For: cells of 72 bytes to 1 GiB whose resident memory, free cells and fragmentation included, never exceeds the
// budget. Not for: general allocation; it does not evict (allocate() answers nullptr and MemoryTier makes room).
//
// Small cells are cut from slabs, large ones have a span of addresses each. A slab is filled with memory when it is
// used, and emptied (MADV_DONTNEED) when it has no cell in use and another class wants its memory, or when much is
// empty; its addresses stay with its class, so nothing is ever unmapped or changes its class, which is what lock-free
// readers rely on (entry.h), and there is no fragmentation between classes. Within a class, half-empty slabs cost
// memory: begin_drain() hands the emptiest one to MemoryTier, which moves its entries elsewhere.
//
// Slabs are cut off one range from the front, so that those of all classes share huge pages (a hit is mostly misses of
// the TLB). A huge page fills 2 MiB at once: the first 32 MiB of a heap, and a huge page of which a slab was
// emptied, have small pages, so that the budget is exceeded by one huge page at most.
//
// Life: references are counted, one for the tier and one for each cell in use, so that a Bytes may outlive its tier.
// Thread-safety: all methods may be called from any thread. Locks: a spin lock a class and one mutex, never two at
// once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"
#include "ragfs/store/memory/entry.h"
#include "ragfs/store/memory/size_classes.h"
#include "ragfs/store/memory/spin_lock.h"
#include "ragfs/store/memory/virtual_range.h"

namespace ragfs {

class SlabHeap {
 public:
  struct Drop {
    void operator()(SlabHeap* heap) const noexcept { heap->drop(); }
  };
  using Ref = std::unique_ptr<SlabHeap, Drop>;

  // Resident memory is at most `budget_bytes` with what charge() added. Errors: full (no address space).
  static Result<Ref> create(size_t budget_bytes, size_t max_cell_bytes);

  // A free cell of at least `bytes` (<= max_cell_bytes), or nullptr when the budget has no room. Never evicts.
  void* allocate(size_t bytes);
  // Gives the cell of an entry back; what BytesOwner::Release calls.
  static void release_entry(BytesOwner* owner) noexcept;
  // Drops the index's reference on an entry that left it. What readers still hold is counted until they let go.
  void detach(Entry* entry) noexcept;

  // Counts memory outside the heap (the index) against the budget, which it may exceed; negative = given back.
  void charge_outside(int64_t bytes) noexcept { resident_.fetch_add(static_cast<uint64_t>(bytes)); }
  // Gives memory of empty slabs back when more than a sixteenth of the budget is empty.
  void trim();
  // Gives back all memory of empty slabs.
  void purge_empty() { reclaim(SIZE_MAX); }

  // An emptying slab: none of its cells is handed out until end_drain().
  struct Drain {
    uint8_t size_class = 0;
    uint32_t slab = 0;
    char* first_cell = nullptr;
    size_t cell_bytes = 0;
    uint32_t cells = 0;  // that were ever used
  };
  // The emptiest slab of the class with the most free cells, if its entries fit into free cells of other slabs.
  std::optional<Drain> begin_drain();
  // True if the slab is empty now.
  bool end_drain(const Drain& drain);

  size_t budget_bytes() const noexcept { return budget_; }
  // Bytes of memory the heap may hold resident now, with what charge_outside() added.
  size_t resident_bytes() const noexcept { return resident_.load(std::memory_order_relaxed); }
  // Free cells in slabs that are in use: what draining could win.
  size_t scattered_bytes() const noexcept { return scattered_.load(std::memory_order_relaxed); }
  // In objects that left the index while a reader held them.
  size_t detached_bytes() const noexcept { return detached_.load(std::memory_order_relaxed); }
  size_t slab_bytes() const noexcept { return slab_bytes_; }
  uint64_t cells_in_use() const noexcept { return references_.load(std::memory_order_relaxed) - 1; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kFillLists = 4;  // partly used slabs by quarter of use; allocation takes from the fullest
  static constexpr uint8_t kEmptyList = kFillLists;       // no cell used, memory still resident
  static constexpr uint8_t kUnusedList = kFillLists + 1;  // no memory
  static constexpr size_t kListCount = kFillLists + 2;
  static constexpr uint8_t kNoList = kListCount;  // full, or being drained, or in somebody's hands

  struct Slab {
    uint32_t prev;
    uint32_t next;
    uint32_t used;
    uint32_t carved;          // cells ever used since it was filled; those after are still zeros
    uint32_t resident_pages;  // charged to the budget
    uint8_t list;
    bool draining;
    Entry* free_cells;  // a list through EntryLinks::next
  };

  struct alignas(64) SizeClass {
    SpinLock lock;
    uint8_t number = 0;
    bool large = false;
    size_t cell_bytes = 0;
    uint32_t cells_per_slab = 1;
    uint32_t first_span = 0;  // large: the numbers of its spans
    uint32_t span_limit = 0;
    size_t spans_offset = 0;  // large: where they lie in the range
    std::atomic<uint32_t> empty_slabs{0};
    std::atomic<size_t> scattered{0};
    uint32_t spans_used RAGFS_GUARDED_BY(lock) = 0;
    size_t spans_committed RAGFS_GUARDED_BY(lock) = 0;
    uint32_t heads[kListCount] RAGFS_GUARDED_BY(lock) = {kNone, kNone, kNone, kNone, kNone, kNone};
  };

  SlabHeap(size_t budget_bytes, size_t slab_bytes, size_t small_limit_bytes, size_t max_cell_bytes);
  ~SlabHeap() = default;
  Result<void> lay_out();
  void drop() noexcept;

  SizeClass& class_for(size_t bytes) const noexcept { return classes_[sizes_.index_for(bytes)]; }
  // A slab's record belongs to the lock of its class.
  Slab& slab(uint32_t number) const noexcept { return reinterpret_cast<Slab*>(records_.base())[number]; }
  size_t offset_of(const SizeClass& size_class, uint32_t number) const noexcept;
  uint32_t number_of(const SizeClass& size_class, const Entry* entry) const noexcept;

  bool charge(size_t bytes) noexcept;
  // charge(), giving empty slabs of any class back until it succeeds.
  bool charge_or_reclaim(size_t bytes);
  void uncharge(size_t bytes) noexcept { resident_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t reclaim(size_t bytes);
  bool reclaim_one(SizeClass& size_class, size_t& given_back);
  void empty_memory(const SizeClass& size_class, uint32_t number, size_t from_page, size_t pages);

  void* take_small(SizeClass& size_class) RAGFS_REQUIRES(size_class.lock);
  void* allocate_small(SizeClass& size_class);
  void* allocate_large(SizeClass& size_class, size_t bytes);
  // Addresses that were never used; kNone when they ran out or the system refused.
  uint32_t fresh_slab() RAGFS_EXCLUDES(fresh_mutex_);
  uint32_t fresh_span(SizeClass& size_class) RAGFS_REQUIRES(size_class.lock);
  void free_cell(SizeClass& size_class, Entry* entry) noexcept;
  // Puts the slab on the list that its use asks for.
  void relist(SizeClass& size_class, uint32_t number) RAGFS_REQUIRES(size_class.lock);
  void unlist(SizeClass& size_class, uint32_t number) RAGFS_REQUIRES(size_class.lock);
  void push(SizeClass& size_class, uint32_t number, uint8_t list) RAGFS_REQUIRES(size_class.lock);
  void add_scattered(SizeClass& size_class, int64_t bytes) noexcept;

  const size_t budget_;
  const size_t slab_bytes_;
  const uint32_t slab_shift_;
  const SizeClasses sizes_;
  VirtualRange range_;    // slabs, then the spans of each large class
  VirtualRange records_;  // a Slab for each
  uint32_t slab_limit_ = 0;
  Mutex fresh_mutex_;
  uint32_t slabs_used_ RAGFS_GUARDED_BY(fresh_mutex_) = 0;
  size_t committed_ RAGFS_GUARDED_BY(fresh_mutex_) = 0;
  std::unique_ptr<SizeClass[]> classes_;
  std::atomic<size_t> resident_{0};
  std::atomic<size_t> empty_resident_{0};  // of resident_, in empty slabs
  std::atomic<size_t> scattered_{0};
  std::atomic<size_t> detached_{0};
  std::atomic<uint64_t> references_{1};
};

}  // namespace ragfs
