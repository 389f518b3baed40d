#include "ragfs/store/memory/spin_lock.h"

#include <sched.h>
#include <time.h>

namespace ragfs {

namespace {

constexpr int kSpins = 128;   // about the length of the longest critical section
constexpr int kYields = 128;  // then the holder has lost its CPU to somebody more important than us
constexpr long kSleep_ns = 50'000;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void SpinLock::lock_contended() noexcept {
  for (int round = 0;; ++round) {
    for (int spin = 0; spin < kSpins; ++spin) {
      // Looking before asking keeps the line shared while somebody else holds it.
      if (!held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire)) return;
      pause_cpu();
    }
    if (round < kYields) {
      sched_yield();
    } else {
      const timespec nap{.tv_sec = 0, .tv_nsec = kSleep_ns};
      nanosleep(&nap, nullptr);
    }
  }
}

}  // namespace ragfs
