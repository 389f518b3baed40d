// thread_slot: a small number that only the calling thread has, while it lives.
//
// For: per-thread cells of counters and hazards, which their thread may then change by a plain load and store instead
// of a locked instruction (five nanoseconds each on the hit path). The first kThreadSlots threads that ask get slots
// 0 to kThreadSlots - 1; those that come when all are taken share the number kThreadSlots and must use atomic
// read-modify-writes. A slot is given back when its thread ends, and whoever gets it next sees all that the thread
// before stored. Not for: telling threads apart (numbers are reused).
// Thread-safety: may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ragfs {

inline constexpr size_t kThreadSlots = 64;

namespace thread_slot_detail {
inline constexpr size_t kUnasked = SIZE_MAX;
inline constinit thread_local size_t mine = kUnasked;
size_t claim() noexcept;
}  // namespace thread_slot_detail

// 0 to kThreadSlots - 1: the caller's own. kThreadSlots: shared with others.
inline size_t thread_slot() noexcept {
  const size_t slot = thread_slot_detail::mine;
  return slot != thread_slot_detail::kUnasked ? slot : thread_slot_detail::claim();
}

// Adds to a cell of `slot`, which is the caller's thread_slot(). Readers may load it at any time.
inline uint64_t add_in_slot(std::atomic<uint64_t>& cell, size_t slot, uint64_t by) noexcept {
  if (slot == kThreadSlots) return cell.fetch_add(by, std::memory_order_relaxed);
  const uint64_t before = cell.load(std::memory_order_relaxed);
  cell.store(before + by, std::memory_order_relaxed);
  return before;
}

}  // namespace ragfs
