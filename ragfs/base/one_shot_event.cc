#include "ragfs/base/one_shot_event.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace ragfs {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel looks at the plain word");

// Sleeps while `word` is `value`, at most until the deadline. May wake early.
void sleep_while(std::atomic<uint32_t>& word, uint32_t value, Deadline deadline) noexcept {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  timespec until{};
  until.tv_sec = deadline.at_monotonic_ns() / kNsPerSecond;
  until.tv_nsec = deadline.at_monotonic_ns() % kNsPerSecond;
  // The bitset form takes an absolute time.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline.is_never() ? nullptr : &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void OneShotEvent::set() noexcept {
  if (state_.exchange(kSet, std::memory_order_acq_rel) != kAwaited) return;
  ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool OneShotEvent::wait_until(Deadline deadline) noexcept {
  uint32_t seen = state_.load(std::memory_order_acquire);
  while (seen != kSet) {
    if (seen == kUnset && !state_.compare_exchange_weak(seen, kAwaited, std::memory_order_acquire)) continue;
    if (deadline.expired()) return is_set();
    sleep_while(state_, kAwaited, deadline);
    seen = state_.load(std::memory_order_acquire);
  }
  return true;
}

}  // namespace ragfs
