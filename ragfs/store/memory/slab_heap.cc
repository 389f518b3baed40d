#include "ragfs/store/memory/slab_heap.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ragfs {

namespace {

constexpr size_t kSlabsPerBudget = 1024;  // a partly used slab in each of the ~80 classes then costs a few percent
constexpr size_t kHeadroomShare = 128;    // of the budget is left for an index that grows between two evictions
constexpr size_t kFewestSlabs = 256;      // but slabs that are too small share their pages badly
constexpr size_t kSmallSlabBytes = size_t{16} << 10;
constexpr size_t kLargestSmallCellBytes = size_t{32} << 10;
constexpr size_t kCommitStepBytes = kHugePageBytes;
constexpr uint32_t kSlabsInTransit = 64;                // on their way from a list to another, in as many threads
constexpr size_t kHugeFromBytes = 16 * kHugePageBytes;  // in a heap with twice that budget: one page is little then

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
  auto heap = std::unique_ptr<SlabHeap, Drop>(new SlabHeap(budget_bytes, slab_bytes, small_limit, max_cell_bytes));
  if (auto done = heap->lay_out(); !done) return std::unexpected(done.error());
  return heap;
}

SlabHeap::SlabHeap(size_t budget_bytes, size_t slab_bytes, size_t small_limit_bytes, size_t max_cell_bytes)
    : budget_(budget_bytes),
      slab_bytes_(slab_bytes),
      slab_shift_(static_cast<uint32_t>(std::countr_zero(slab_bytes))),
      sizes_(small_limit_bytes, max_cell_bytes),
      classes_(std::make_unique<SizeClass[]>(sizes_.count())) {}

Result<void> SlabHeap::lay_out() {
  size_t small_classes = 0;
  while (small_classes < sizes_.count() && !sizes_.is_large(small_classes)) ++small_classes;
  // Every small class may once have had the whole budget.
  slab_limit_ = static_cast<uint32_t>(small_classes * (budget_ / slab_bytes_ + kSlabsInTransit));
  size_t total = round_up(size_t{slab_limit_} * slab_bytes_, kHugePageBytes);
  uint32_t records = slab_limit_;
  for (size_t i = 0; i < sizes_.count(); ++i) {
    SizeClass& size_class = classes_[i];
    size_class.number = static_cast<uint8_t>(i);
    size_class.cell_bytes = sizes_.cell_bytes(i);
    size_class.large = sizes_.is_large(i);
    if (!size_class.large) {
      size_class.cells_per_slab = static_cast<uint32_t>(slab_bytes_ / size_class.cell_bytes);
      continue;
    }
    // A large cell fills more than half of its span, or a page at the least.
    size_class.span_limit = static_cast<uint32_t>(budget_ / std::max(size_class.cell_bytes / 2, kPageBytes));
    size_class.span_limit += kSlabsInTransit;
    size_class.first_span = records;
    size_class.spans_offset = total;
    records += size_class.span_limit;
    total += round_up(size_class.span_limit * size_class.cell_bytes, kHugePageBytes);
  }
  for (auto [range, bytes] : {std::pair{&range_, total}, std::pair{&records_, records * sizeof(Slab)}}) {
    Result<VirtualRange> reserved = VirtualRange::reserve(bytes);
    if (!reserved) return std::unexpected(reserved.error());
    *range = std::move(*reserved);
    range->advise(0, range->reserved_bytes(), PageSize::small);
  }
  if (!records_.commit(0, records_.reserved_bytes()))
    return fail(ErrorCode::full, "no memory for the records of slabs");
  return {};
}

size_t SlabHeap::offset_of(const SizeClass& size_class, uint32_t number) const noexcept {
  if (!size_class.large) return size_t{number} << slab_shift_;
  return size_class.spans_offset + (number - size_class.first_span) * size_class.cell_bytes;
}

uint32_t SlabHeap::number_of(const SizeClass& size_class, const Entry* entry) const noexcept {
  const auto offset = static_cast<size_t>(reinterpret_cast<const char*>(entry) - range_.base());
  if (!size_class.large) return static_cast<uint32_t>(offset >> slab_shift_);
  const int span_shift = std::countr_zero(size_class.cell_bytes);
  return size_class.first_span + static_cast<uint32_t>((offset - size_class.spans_offset) >> span_shift);
}

void SlabHeap::drop() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// --- the budget ---

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

void SlabHeap::empty_memory(const SizeClass& size_class, uint32_t number, size_t from_page, size_t pages) {
  const size_t offset = offset_of(size_class, number);
  if (!size_class.large && slab_bytes_ < kHugePageBytes && offset >= kHugeFromBytes) {
    // Else the kernel could fill the hole again to make a huge page.
    range_.advise(offset / kHugePageBytes * kHugePageBytes, kHugePageBytes, PageSize::small);
  }
  range_.purge(offset + from_page * kPageBytes, pages * kPageBytes);
  uncharge(pages * kPageBytes);
}

bool SlabHeap::reclaim_one(SizeClass& size_class, size_t& given_back) {
  uint32_t number = kNone;
  uint32_t pages = 0;
  {
    const SpinLockGuard guard(size_class.lock);
    number = size_class.heads[kEmptyList];
    if (number == kNone) return false;
    unlist(size_class, number);
    pages = std::exchange(slab(number).resident_pages, 0);
  }
  // On no list now, so the system calls need no lock.
  empty_memory(size_class, number, 0, pages);
  given_back += size_t{pages} * kPageBytes;
  const SpinLockGuard guard(size_class.lock);
  slab(number).carved = 0;
  slab(number).free_cells = nullptr;
  push(size_class, number, kUnusedList);
  return true;
}

size_t SlabHeap::reclaim(size_t bytes) {
  size_t given_back = 0;
  for (size_t i = 0; i < sizes_.count() && given_back < bytes; ++i) {
    SizeClass& size_class = classes_[i];
    while (given_back < bytes && size_class.empty_slabs.load(std::memory_order_relaxed) != 0) {
      if (!reclaim_one(size_class, given_back)) break;
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

void SlabHeap::push(SizeClass& size_class, uint32_t number, uint8_t list) {
  Slab& one = slab(number);
  one.list = list;
  one.prev = kNone;
  one.next = size_class.heads[list];
  if (one.next != kNone) slab(one.next).prev = number;
  size_class.heads[list] = number;
  if (list == kEmptyList) {
    size_class.empty_slabs.fetch_add(1, std::memory_order_relaxed);
    empty_resident_.fetch_add(size_t{one.resident_pages} * kPageBytes, std::memory_order_relaxed);
  }
}

void SlabHeap::unlist(SizeClass& size_class, uint32_t number) {
  Slab& one = slab(number);
  if (one.list == kNoList) return;
  if (one.prev != kNone) {
    slab(one.prev).next = one.next;
  } else {
    size_class.heads[one.list] = one.next;
  }
  if (one.next != kNone) slab(one.next).prev = one.prev;
  if (one.list == kEmptyList) {
    size_class.empty_slabs.fetch_sub(1, std::memory_order_relaxed);
    empty_resident_.fetch_sub(size_t{one.resident_pages} * kPageBytes, std::memory_order_relaxed);
  }
  one.list = kNoList;
}

void SlabHeap::relist(SizeClass& size_class, uint32_t number) {
  const Slab& one = slab(number);
  if (one.draining) return;
  uint8_t list = kNoList;
  if (one.used == 0) {
    list = kEmptyList;
  } else if (one.used < size_class.cells_per_slab) {
    list = static_cast<uint8_t>(uint64_t{one.used} * kFillLists / size_class.cells_per_slab);
  }
  if (list == one.list) return;
  unlist(size_class, number);
  if (list != kNoList) push(size_class, number, list);
}

// --- addresses ---

uint32_t SlabHeap::fresh_slab() {
  const MutexLock lock(fresh_mutex_);
  if (slabs_used_ >= slab_limit_) return kNone;
  const size_t needed = (size_t{slabs_used_} + 1) << slab_shift_;
  if (needed > committed_) {
    const size_t step = std::min(kCommitStepBytes, range_.reserved_bytes() - committed_);
    if (!range_.commit(committed_, step)) return kNone;
    if (committed_ >= kHugeFromBytes && budget_ >= 2 * kHugeFromBytes) range_.advise(committed_, step, PageSize::huge);
    committed_ += step;
  }
  return slabs_used_++;
}

uint32_t SlabHeap::fresh_span(SizeClass& size_class) {
  if (size_class.spans_used >= size_class.span_limit) return kNone;
  const size_t needed = (size_t{size_class.spans_used} + 1) * size_class.cell_bytes;
  if (needed > size_class.spans_committed) {
    const size_t limit = size_class.span_limit * size_class.cell_bytes;
    const size_t wanted = std::min(limit, round_up(needed, kCommitStepBytes));
    const size_t step = wanted - size_class.spans_committed;
    if (!range_.commit(size_class.spans_offset + size_class.spans_committed, step)) return kNone;
    size_class.spans_committed = wanted;
  }
  return size_class.first_span + size_class.spans_used++;
}

// --- cells ---

void* SlabHeap::take_small(SizeClass& size_class) {
  uint32_t number = kNone;
  for (size_t list = kFillLists; list-- > 0 && number == kNone;) number = size_class.heads[list];
  if (number == kNone) number = size_class.heads[kEmptyList];
  if (number == kNone) return nullptr;
  Slab& one = slab(number);
  const auto cell_bytes = static_cast<int64_t>(size_class.cell_bytes);
  if (one.used == 0) add_scattered(size_class, cell_bytes * size_class.cells_per_slab);
  void* cell = one.free_cells;
  if (cell != nullptr) {
    one.free_cells = one.free_cells->next;
  } else {
    cell = range_.base() + offset_of(size_class, number) + size_class.cell_bytes * one.carved++;
  }
  ++one.used;
  add_scattered(size_class, -cell_bytes);
  relist(size_class, number);
  return cell;
}

void* SlabHeap::allocate(size_t bytes) {
  SizeClass& size_class = class_for(bytes);
  void* cell = size_class.large ? allocate_large(size_class, bytes) : allocate_small(size_class);
  if (cell != nullptr) references_.fetch_add(1, std::memory_order_relaxed);
  return cell;
}

void* SlabHeap::allocate_small(SizeClass& size_class) {
  {
    const SpinLockGuard guard(size_class.lock);
    if (void* cell = take_small(size_class)) return cell;
  }
  if (!charge_or_reclaim(slab_bytes_)) return nullptr;
  uint32_t number = kNone;
  {
    const SpinLockGuard guard(size_class.lock);
    number = size_class.heads[kUnusedList];
    if (number != kNone) unlist(size_class, number);
  }
  const bool fresh = number == kNone;
  if (fresh) number = fresh_slab();
  if (number == kNone) {
    uncharge(slab_bytes_);
    return nullptr;
  }
  const SpinLockGuard guard(size_class.lock);
  Slab& one = slab(number);
  if (fresh) one = Slab{.list = kNoList};
  one.resident_pages = static_cast<uint32_t>(slab_bytes_ / kPageBytes);
  push(size_class, number, kEmptyList);
  return take_small(size_class);
}

void* SlabHeap::allocate_large(SizeClass& size_class, size_t bytes) {
  const auto pages = static_cast<uint32_t>((bytes + kPageBytes - 1) / kPageBytes);
  uint32_t number = kNone;
  uint32_t resident = 0;
  {
    const SpinLockGuard guard(size_class.lock);
    number = size_class.heads[kEmptyList];
    if (number == kNone) number = size_class.heads[kUnusedList];
    if (number == kNone) {
      number = fresh_span(size_class);
      if (number == kNone) return nullptr;
      slab(number) = Slab{.list = kNoList};
    }
    unlist(size_class, number);
    resident = slab(number).resident_pages;
  }
  // What a bigger object left behind its successor's end goes back, unless it is little.
  if (resident > pages + pages / 4) {
    empty_memory(size_class, number, pages, resident - pages);
    resident = pages;
  }
  const size_t missing = pages - std::min(pages, resident);
  const bool charged = charge_or_reclaim(missing * kPageBytes);
  const SpinLockGuard guard(size_class.lock);
  Slab& one = slab(number);
  if (!charged) {
    one.resident_pages = resident;
    push(size_class, number, resident != 0 ? kEmptyList : kUnusedList);
    return nullptr;
  }
  one.resident_pages = std::max(pages, resident);
  one.used = 1;
  one.carved = 1;
  return range_.base() + offset_of(size_class, number);
}

void SlabHeap::free_cell(SizeClass& size_class, Entry* entry) noexcept {
  const uint32_t number = number_of(size_class, entry);
  const auto cell_bytes = static_cast<int64_t>(size_class.cell_bytes);
  const SpinLockGuard guard(size_class.lock);
  Slab& one = slab(number);
  --one.used;
  if (!size_class.large) {
    entry->next = one.free_cells;
    one.free_cells = entry;
    if (!one.draining) {
      add_scattered(size_class, cell_bytes);
      if (one.used == 0) add_scattered(size_class, -cell_bytes * size_class.cells_per_slab);
    }
  }
  relist(size_class, number);
}

void SlabHeap::release_entry(BytesOwner* owner) noexcept {
  auto* entry = static_cast<Entry*>(owner);
  SlabHeap* heap = entry->heap;
  if ((entry->state() & Entry::kDetached) != 0) {
    heap->detached_.fetch_sub(entry->bytes(), std::memory_order_relaxed);
    entry->set_state(0);
  }
  heap->free_cell(heap->class_for(entry->bytes()), entry);
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
  uint32_t number = kNone;
  for (size_t list = 0; list < kFillLists && number == kNone; ++list) number = size_class.heads[list];
  if (number == kNone) return std::nullopt;
  Slab& one = slab(number);
  const size_t free_here = (size_class.cells_per_slab - one.used) * size_class.cell_bytes;
  const size_t free_elsewhere = size_class.scattered.load(std::memory_order_relaxed) - free_here;
  if (free_elsewhere < one.used * size_class.cell_bytes) return std::nullopt;
  unlist(size_class, number);
  one.draining = true;
  add_scattered(size_class, -static_cast<int64_t>(free_here));
  return Drain{.size_class = size_class.number,
               .slab = number,
               .first_cell = range_.base() + offset_of(size_class, number),
               .cell_bytes = size_class.cell_bytes,
               .cells = one.carved};
}

bool SlabHeap::end_drain(const Drain& drain) {
  SizeClass& size_class = classes_[drain.size_class];
  const SpinLockGuard guard(size_class.lock);
  Slab& one = slab(drain.slab);
  one.draining = false;
  if (one.used != 0) {
    add_scattered(size_class, static_cast<int64_t>((size_class.cells_per_slab - one.used) * size_class.cell_bytes));
  }
  relist(size_class, drain.slab);
  return one.used == 0;
}

}  // namespace ragfs
