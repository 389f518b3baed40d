#include "ragfs/store/memory/slab_heap.h"

#include <algorithm>
#include <bit>

namespace ragfs {

namespace {

constexpr size_t kSlabsPerBudget = 1024;  // a partly used slab in each of the ~80 classes then costs a few percent
constexpr size_t kHeadroomShare = 128;    // of the budget is left for an index that grows between two evictions
constexpr size_t kFewestSlabs = 256;      // but slabs that are too small share their pages badly
constexpr size_t kSmallSlabBytes = size_t{16} << 10;
constexpr size_t kLargestSmallCellBytes = size_t{32} << 10;
constexpr size_t kCommitStepBytes = size_t{1} << 20;
constexpr size_t kSlabsInTransit = 64;  // on their way from a list to another, in as many threads

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t pick_slab_bytes(size_t budget_bytes) {
  const size_t fine = std::min(budget_bytes / kSlabsPerBudget, kHugePageBytes);
  const size_t coarse = std::min(budget_bytes / kFewestSlabs, kSmallSlabBytes);
  return std::bit_floor(std::max({fine, coarse, kPageBytes}));
}

}  // namespace

// --- making and ending ---

Result<SlabHeap::Ref> SlabHeap::create(size_t budget_bytes, size_t max_cell_bytes) {
  const size_t slab_bytes = pick_slab_bytes(budget_bytes);
  const size_t small_limit = std::min(slab_bytes / 4, kLargestSmallCellBytes);
  Ref heap(new SlabHeap(budget_bytes, slab_bytes, small_limit, max_cell_bytes));
  if (auto done = heap->lay_out(); !done) return std::unexpected(done.error());
  return heap;
}

SlabHeap::SlabHeap(size_t budget_bytes, size_t slab_bytes, size_t small_limit_bytes, size_t max_cell_bytes)
    : budget_(budget_bytes),
      slab_bytes_(slab_bytes),
      sizes_(small_limit_bytes, max_cell_bytes),
      classes_(std::make_unique<SizeClass[]>(sizes_.count())) {}

Result<void> SlabHeap::lay_out() {
  size_t total = 0;
  for (size_t i = 0; i < sizes_.count(); ++i) {
    SizeClass& size_class = classes_[i];
    size_class.cell_bytes = sizes_.cell_bytes(i);
    size_class.large = sizes_.is_large(i);
    const size_t slab_span = size_class.large ? size_class.cell_bytes : slab_bytes_;
    size_class.slab_shift = static_cast<uint32_t>(std::countr_zero(slab_span));
    size_class.cells_per_slab = static_cast<uint32_t>(slab_span / size_class.cell_bytes);
    // A large cell fills more than half of its addresses, or a page at the least.
    const size_t least_resident = size_class.large ? std::max(slab_span / 2, kPageBytes) : slab_bytes_;
    size_class.slab_limit = static_cast<uint32_t>(budget_ / least_resident + kSlabsInTransit);
    size_class.offset = total;
    total += round_up(size_t{size_class.slab_limit} * slab_span, kHugePageBytes);
  }
  Result<VirtualRange> range = VirtualRange::reserve(total);
  if (!range) return std::unexpected(range.error());
  range_ = std::move(*range);
  // Huge pages only where slabs are of their size: elsewhere the kernel would fill what the budget does not count.
  range_.advise(0, total, PageSize::small);
  for (size_t i = 0; i < sizes_.count(); ++i) {
    SizeClass& size_class = classes_[i];
    size_class.base = range_.base() + size_class.offset;
    if (!size_class.large && slab_bytes_ == kHugePageBytes) {
      range_.advise(size_class.offset, size_t{size_class.slab_limit} << size_class.slab_shift, PageSize::huge);
    }
  }
  return {};
}

void SlabHeap::drop() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// --- the budget ---

uint32_t SlabHeap::pages_for(const SizeClass& size_class, size_t bytes) noexcept {
  const size_t used = size_class.large ? bytes : size_t{1} << size_class.slab_shift;
  return static_cast<uint32_t>((used + kPageBytes - 1) / kPageBytes);
}

bool SlabHeap::charge(size_t bytes) noexcept {
  size_t seen = resident_.load(std::memory_order_relaxed);
  do {
    if (bytes != 0 && seen + bytes > budget_ - budget_ / kHeadroomShare) return false;
  } while (!resident_.compare_exchange_weak(seen, seen + bytes, std::memory_order_relaxed));
  return true;
}

bool SlabHeap::charge_or_reclaim(size_t bytes) {
  while (!charge(bytes)) {
    if (reclaim(bytes) == 0) return false;
  }
  return true;
}

size_t SlabHeap::reclaim(size_t bytes) {
  size_t given_back = 0;
  for (size_t i = 0; i < sizes_.count() && given_back < bytes; ++i) {
    SizeClass& size_class = classes_[i];
    while (given_back < bytes && size_class.empty_slabs.load(std::memory_order_relaxed) != 0) {
      uint32_t index = kNone;
      uint32_t pages = 0;
      {
        const SpinLockGuard guard(size_class.lock);
        index = size_class.heads[kEmptyList];
        if (index == kNone) break;
        unlist(size_class, index);
        pages = std::exchange(size_class.slabs[index].resident_pages, 0);
      }
      // In nobody's list now, so the system call needs no lock.
      range_.purge(size_class.offset + (size_t{index} << size_class.slab_shift), size_t{pages} * kPageBytes);
      resident_.fetch_sub(size_t{pages} * kPageBytes, std::memory_order_relaxed);
      given_back += size_t{pages} * kPageBytes;
      const SpinLockGuard guard(size_class.lock);
      Slab& slab = size_class.slabs[index];
      slab.carved = 0;
      slab.free_cells = nullptr;
      push(size_class, index, kUnusedList);
    }
  }
  return given_back;
}

void SlabHeap::trim() {
  const size_t empty = empty_resident_.load(std::memory_order_relaxed);
  if (empty > budget_ / 16) reclaim(empty - budget_ / 32);
}

void SlabHeap::add_scattered(SizeClass& size_class, int64_t bytes) noexcept {
  size_class.scattered.fetch_add(static_cast<size_t>(bytes), std::memory_order_relaxed);
  scattered_.fetch_add(static_cast<size_t>(bytes), std::memory_order_relaxed);
}

// --- lists of slabs ---

void SlabHeap::push(SizeClass& size_class, uint32_t index, uint8_t list) {
  Slab& slab = size_class.slabs[index];
  slab.list = list;
  slab.prev = kNone;
  slab.next = size_class.heads[list];
  if (slab.next != kNone) size_class.slabs[slab.next].prev = index;
  size_class.heads[list] = index;
  if (list == kEmptyList) {
    size_class.empty_slabs.fetch_add(1, std::memory_order_relaxed);
    empty_resident_.fetch_add(size_t{slab.resident_pages} * kPageBytes, std::memory_order_relaxed);
  }
}

void SlabHeap::unlist(SizeClass& size_class, uint32_t index) {
  Slab& slab = size_class.slabs[index];
  if (slab.list == kNoList) return;
  if (slab.prev != kNone) {
    size_class.slabs[slab.prev].next = slab.next;
  } else {
    size_class.heads[slab.list] = slab.next;
  }
  if (slab.next != kNone) size_class.slabs[slab.next].prev = slab.prev;
  if (slab.list == kEmptyList) {
    size_class.empty_slabs.fetch_sub(1, std::memory_order_relaxed);
    empty_resident_.fetch_sub(size_t{slab.resident_pages} * kPageBytes, std::memory_order_relaxed);
  }
  slab.list = kNoList;
}

void SlabHeap::relist(SizeClass& size_class, uint32_t index) {
  const Slab& slab = size_class.slabs[index];
  if (slab.draining) return;
  uint8_t list = kNoList;
  if (slab.used == 0) {
    list = kEmptyList;
  } else if (slab.used < size_class.cells_per_slab) {
    list = static_cast<uint8_t>(uint64_t{slab.used} * kFillLists / size_class.cells_per_slab);
  }
  if (list == slab.list) return;
  unlist(size_class, index);
  if (list != kNoList) push(size_class, index, list);
}

// --- cells ---

void* SlabHeap::take_small(SizeClass& size_class) {
  uint32_t index = kNone;
  for (size_t list = kFillLists; list-- > 0 && index == kNone;) index = size_class.heads[list];
  if (index == kNone) index = size_class.heads[kEmptyList];
  if (index == kNone) return nullptr;
  Slab& slab = size_class.slabs[index];
  const auto cell_bytes = static_cast<int64_t>(size_class.cell_bytes);
  if (slab.used == 0) add_scattered(size_class, cell_bytes * size_class.cells_per_slab);
  void* cell = slab.free_cells;
  if (cell != nullptr) {
    slab.free_cells = slab.free_cells->next;
  } else {
    cell = size_class.base + (size_t{index} << size_class.slab_shift) + size_class.cell_bytes * slab.carved++;
  }
  ++slab.used;
  add_scattered(size_class, -cell_bytes);
  relist(size_class, index);
  return cell;
}

bool SlabHeap::commit_slabs(SizeClass& size_class, size_t slabs) {
  const size_t needed = slabs << size_class.slab_shift;
  if (needed <= size_class.committed) return true;
  const size_t limit = size_t{size_class.slab_limit} << size_class.slab_shift;
  const size_t wanted = std::min(limit, round_up(needed, kCommitStepBytes));
  if (!range_.commit(size_class.offset + size_class.committed, wanted - size_class.committed)) return false;
  size_class.committed = wanted;
  return true;
}

uint32_t SlabHeap::open_slab(SizeClass& size_class, uint32_t pages) {
  uint32_t index = size_class.heads[kUnusedList];
  if (index != kNone) {
    unlist(size_class, index);
  } else {
    index = static_cast<uint32_t>(size_class.slabs.size());
    if (index >= size_class.slab_limit || !commit_slabs(size_class, size_t{index} + 1)) return kNone;
    size_class.slabs.emplace_back();
  }
  size_class.slabs[index].resident_pages = pages;
  return index;
}

void* SlabHeap::allocate(size_t bytes) {
  SizeClass& size_class = classes_[class_index(bytes)];
  void* cell = nullptr;
  if (size_class.large) {
    cell = allocate_large(size_class, bytes);
  } else {
    {
      const SpinLockGuard guard(size_class.lock);
      cell = take_small(size_class);
    }
    const uint32_t pages = pages_for(size_class, bytes);
    if (cell == nullptr && charge_or_reclaim(size_t{pages} * kPageBytes)) {
      const SpinLockGuard guard(size_class.lock);
      const uint32_t index = open_slab(size_class, pages);
      if (index != kNone) {
        push(size_class, index, kEmptyList);
        cell = take_small(size_class);
      } else {
        resident_.fetch_sub(size_t{pages} * kPageBytes, std::memory_order_relaxed);
      }
    }
  }
  if (cell != nullptr) references_.fetch_add(1, std::memory_order_relaxed);
  return cell;
}

void* SlabHeap::allocate_large(SizeClass& size_class, size_t bytes) {
  const uint32_t pages = pages_for(size_class, bytes);
  uint32_t index = kNone;
  uint32_t resident = 0;
  {
    const SpinLockGuard guard(size_class.lock);
    index = size_class.heads[kEmptyList];
    if (index != kNone) {
      unlist(size_class, index);
      resident = size_class.slabs[index].resident_pages;
    }
  }
  // What a bigger object left behind its successor's end goes back, unless it is little.
  if (resident > pages + pages / 4) {
    const size_t surplus = size_t{resident - pages} * kPageBytes;
    range_.purge(size_class.offset + (size_t{index} << size_class.slab_shift) + size_t{pages} * kPageBytes, surplus);
    resident_.fetch_sub(surplus, std::memory_order_relaxed);
    resident = pages;
  }
  const size_t missing = size_t{pages - std::min(pages, resident)} * kPageBytes;
  const bool charged = charge_or_reclaim(missing);
  const SpinLockGuard guard(size_class.lock);
  if (charged && index == kNone) {
    index = open_slab(size_class, pages);
    if (index == kNone) resident_.fetch_sub(missing, std::memory_order_relaxed);
  }
  if (index == kNone) return nullptr;
  Slab& slab = size_class.slabs[index];
  if (!charged) {
    slab.resident_pages = resident;
    push(size_class, index, kEmptyList);
    return nullptr;
  }
  slab.resident_pages = std::max(pages, resident);
  slab.used = 1;
  slab.carved = 1;
  return size_class.base + (size_t{index} << size_class.slab_shift);
}

void SlabHeap::free_cell(SizeClass& size_class, Entry* entry) noexcept {
  const auto offset = static_cast<size_t>(reinterpret_cast<char*>(entry) - size_class.base);
  const auto index = static_cast<uint32_t>(offset >> size_class.slab_shift);
  const auto cell_bytes = static_cast<int64_t>(size_class.cell_bytes);
  const SpinLockGuard guard(size_class.lock);
  Slab& slab = size_class.slabs[index];
  --slab.used;
  if (!size_class.large) {
    entry->next = slab.free_cells;
    slab.free_cells = entry;
    if (!slab.draining) {
      add_scattered(size_class, cell_bytes);
      if (slab.used == 0) add_scattered(size_class, -cell_bytes * size_class.cells_per_slab);
    }
  }
  relist(size_class, index);
}

void SlabHeap::release_entry(BytesOwner* owner) noexcept {
  auto* entry = static_cast<Entry*>(owner);
  SlabHeap* heap = entry->heap;
  if ((entry->state() & Entry::kDetached) != 0) {
    heap->detached_.fetch_sub(entry->bytes(), std::memory_order_relaxed);
    entry->set_state(0);
  }
  heap->free_cell(heap->classes_[heap->class_index(entry->bytes())], entry);
  heap->drop();
}

void SlabHeap::detach(Entry* entry) noexcept {
  if (entry->refs() > 1) {
    detached_.fetch_add(entry->bytes(), std::memory_order_relaxed);
    entry->set_state(Entry::kDetached);
  }
  entry->drop_ref();
}

// --- draining ---

std::optional<SlabHeap::Drain> SlabHeap::begin_drain() {
  size_t best = 0;
  for (size_t i = 1; i < sizes_.count(); ++i) {
    if (classes_[i].scattered.load(std::memory_order_relaxed) >
        classes_[best].scattered.load(std::memory_order_relaxed)) {
      best = i;
    }
  }
  SizeClass& size_class = classes_[best];
  const SpinLockGuard guard(size_class.lock);
  uint32_t index = kNone;
  for (size_t list = 0; list < kFillLists && index == kNone; ++list) index = size_class.heads[list];
  if (index == kNone) return std::nullopt;
  Slab& slab = size_class.slabs[index];
  const size_t free_here = (size_class.cells_per_slab - slab.used) * size_class.cell_bytes;
  const size_t free_elsewhere = size_class.scattered.load(std::memory_order_relaxed) - free_here;
  if (free_elsewhere < slab.used * size_class.cell_bytes) return std::nullopt;
  unlist(size_class, index);
  slab.draining = true;
  add_scattered(size_class, -static_cast<int64_t>(free_here));
  return Drain{.size_class = best,
               .slab = index,
               .first_cell = size_class.base + (size_t{index} << size_class.slab_shift),
               .cell_bytes = size_class.cell_bytes,
               .cells = slab.carved};
}

bool SlabHeap::end_drain(const Drain& drain) {
  SizeClass& size_class = classes_[drain.size_class];
  const SpinLockGuard guard(size_class.lock);
  Slab& slab = size_class.slabs[drain.slab];
  slab.draining = false;
  if (slab.used != 0) {
    add_scattered(size_class, static_cast<int64_t>((size_class.cells_per_slab - slab.used) * size_class.cell_bytes));
  }
  relist(size_class, drain.slab);
  return slab.used == 0;
}

}  // namespace ragfs
