// AsymmetricBarrier: "store this, then load that, in this order", nearly free on one side and dear on the other.
//
// Hazard pointers need a full barrier between announcing a pointer and looking whether it is still current. The side
// that runs a million times a second here pays a compiler barrier only; the side that runs now and then makes every
// running thread of the process execute a full barrier (membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED). Where the
// kernel has no such call, or under ThreadSanitizer, both sides use sequentially consistent operations instead.
// The idea is of the Linux man page and of folly's asymmetricThreadFence. Not for: anything but that pattern.
// Thread-safety: may be used from any thread.
#pragma once

#include <atomic>

namespace ragfs {

class AsymmetricBarrier {
 public:
  // Stores `value` in `cell` (release). Loads that follow in program order see either what a heavy() side stored before
  // its heavy(), or else that side sees `value` after it.
  template <typename T>
  static void store_before_loads(std::atomic<T>& cell, T value) noexcept {
    if (kExpedited) {
      cell.store(value, std::memory_order_release);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      cell.exchange(value, std::memory_order_seq_cst);
    }
  }

  // The other side: what it must make seen is stored with memory_order_seq_cst before, what it looks for is loaded
  // after.
  static void heavy() noexcept;

 private:
  static bool register_process() noexcept;
  // False until it is initialised, which is only slower, never wrong: heavy() always asks the kernel if it can.
  static inline const bool kExpedited = register_process();
};

}  // namespace ragfs
