#include "ragfs/base/one_shot_event.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ragfs {
namespace {

TEST(OneShotEvent, WakesEverybodyAndShowsWhatWasWrittenBefore) {
  for (int round = 0; round < 50; ++round) {
    OneShotEvent event;
    int written = 0;
    std::atomic<int> right{0};
    {
      std::vector<std::jthread> waiters;
      for (int i = 0; i < 20; ++i) {
        waiters.emplace_back([&] {
          if (event.wait_until(Deadline::in_ms(60'000)) && written == round + 1) ++right;
        });
      }
      written = round + 1;
      event.set();
      event.set();
    }
    ASSERT_EQ(right.load(), 20);
    EXPECT_TRUE(event.wait_until(Deadline::in_ms(0))) << "set is set, whatever the deadline";
  }
}

TEST(OneShotEvent, ADeadlineEndsAWait) {
  OneShotEvent event;
  EXPECT_FALSE(event.wait_until(Deadline::in_ms(0)));
  const Deadline deadline = Deadline::in_ms(20);
  EXPECT_FALSE(event.wait_until(deadline));
  EXPECT_TRUE(deadline.expired());
  EXPECT_FALSE(event.is_set());
  event.set();
  EXPECT_TRUE(event.is_set());
  EXPECT_TRUE(event.wait_until(Deadline::never()));
}

}  // namespace
}  // namespace ragfs
