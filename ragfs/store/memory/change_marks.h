// ChangeMarks: whether a key may have been put or erased since some moment.
//
// For: copies that travel between tiers outside any lock. Whoever takes a copy (an evicted value on its way to the
// disk, a value read from the disk on its way back) remembers now() before he takes it, and asks changed_since() where
// it matters, under the lock that a change of the key has to take too. A change says begin() before it touches any
// tier and end() after the last one.
//   copy:    ticket = now(); take the value; lock { if (!changed_since(ticket)) publish; }
//   change:  begin(); lock { replace or remove }; end();
// If the copy's lock comes first, the change replaces what it published; if the change's comes first, it is either
// still running or its end() drew a number above the ticket. Keys share slots by hash, so a copy may be refused in
// vain. Thread-safety: all methods may be called from any thread; no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ragfs {

class ChangeMarks {
 public:
  uint64_t now() const noexcept { return clock_.load(); }
  void begin(uint64_t hash) noexcept { slot(hash).running.fetch_add(1); }
  void end(uint64_t hash) noexcept {
    Slot& mine = slot(hash);
    const uint64_t number = clock_.fetch_add(1) + 1;
    uint64_t seen = mine.last.load();
    while (seen < number && !mine.last.compare_exchange_weak(seen, number)) {
    }
    mine.running.fetch_sub(1);
  }
  // In this order: what is not running any more has left its number.
  bool changed_since(uint64_t hash, uint64_t ticket) const noexcept {
    const Slot& asked = slots_[index(hash)];
    return asked.running.load() != 0 || asked.last.load() > ticket;
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 14;
  struct Slot {
    std::atomic<uint64_t> last{0};  // number of the last change that ended
    std::atomic<uint64_t> running{0};
  };
  static size_t index(uint64_t hash) noexcept { return (hash ^ hash >> 32) & (kSlots - 1); }
  Slot& slot(uint64_t hash) noexcept { return slots_[index(hash)]; }

  std::array<Slot, kSlots> slots_;
  std::atomic<uint64_t> clock_{1};
};

}  // namespace ragfs
