#include "ragfs/base/thread_slot.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "ragfs/base/striped_counters.h"
#include "ragfs/base/sync.h"

namespace ragfs {
namespace {

TEST(ThreadSlot, LivingThreadsNeverHaveOneSlotTogether) {
  constexpr size_t kThreads = kThreadSlots + 10;
  Mutex mutex;
  std::multiset<size_t> seen;
  std::atomic<size_t> asked{0};
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const size_t slot = thread_slot();
        EXPECT_EQ(slot, thread_slot());
        {
          MutexLock lock(mutex);
          seen.insert(slot);
        }
        ++asked;
        while (asked < kThreads) std::this_thread::yield();
      });
    }
  }
  for (size_t slot = 0; slot < kThreadSlots; ++slot) EXPECT_LE(seen.count(slot), 1U) << slot;
  EXPECT_GE(seen.count(kThreadSlots), kThreads - kThreadSlots);
}

TEST(ThreadSlot, ASlotIsGivenBackWhenItsThreadEnds) {
  for (size_t i = 0; i < 4 * kThreadSlots; ++i) {
    std::jthread([&] { EXPECT_LT(thread_slot(), kThreadSlots); }).join();
  }
}

TEST(ThreadSlot, CountersStayExactOverThreadsThatShareAndThreadsThatFollow) {
  StripedCounters<2> counters;
  constexpr size_t kThreads = kThreadSlots + 20;
  constexpr uint64_t kAdds = 2'000;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (uint64_t n = 0; n < kAdds; ++n) counters.add(1);
      });
    }
  }
  EXPECT_EQ(counters.read(1), 3 * kThreads * kAdds);
  EXPECT_EQ(counters.read(0), 0U);
}

}  // namespace
}  // namespace ragfs
