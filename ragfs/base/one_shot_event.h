// OneShotEvent: set once, awaited by many, each until a deadline of its own.
//
// For: handing one result to a crowd (the followers of a flight). Whoever is woken shares no lock with the others; with
// a condition variable a thousand of them would queue for its mutex one after the other. What was written before set()
// is visible to whoever saw it set (release and acquire). Not for: events that come again. Linux futex(2).
// Thread-safety: all methods may be called from any thread; the object must outlive the calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "ragfs/base/context.h"

namespace ragfs {

class OneShotEvent {
 public:
  OneShotEvent() = default;
  OneShotEvent(const OneShotEvent&) = delete;
  OneShotEvent& operator=(const OneShotEvent&) = delete;

  bool is_set() const noexcept { return state_.load(std::memory_order_acquire) == kSet; }
  // Idempotent. Wakes everybody.
  void set() noexcept;
  // True once it is set; false when the deadline passed before.
  bool wait_until(Deadline deadline) noexcept;

 private:
  // unset -> awaited -> set, or unset -> set: set() makes a system call only when somebody may sleep.
  static constexpr uint32_t kUnset = 0;
  static constexpr uint32_t kAwaited = 1;
  static constexpr uint32_t kSet = 2;
  std::atomic<uint32_t> state_{kUnset};
};

}  // namespace ragfs
