#include "ragfs/base/context.h"

#include <gtest/gtest.h>

#include <limits>

namespace ragfs {
namespace {

TEST(Deadline, NeverIsTheDefaultAndDoesNotExpire) {
  const Deadline never;
  EXPECT_TRUE(never.is_never());
  EXPECT_FALSE(never.expired());
  EXPECT_EQ(never.remaining_ns(), std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(Context().deadline.is_never());
}

TEST(Deadline, ExpiresWhenItsTimeHasCome) {
  EXPECT_TRUE(Deadline::in_ms(-1).expired());
  EXPECT_EQ(Deadline::in_ms(-1).remaining_ns(), 0);
  const Deadline later = Deadline::in_ms(60'000);
  EXPECT_FALSE(later.expired());
  EXPECT_GT(later.remaining_ns(), 30'000'000'000);
  EXPECT_LE(later.remaining_ns(), 60'000'000'000);
}

TEST(Deadline, TheEarlierOfTwo) {
  const Deadline soon = Deadline::at_ns(1'000);
  const Deadline late = Deadline::at_ns(2'000);
  EXPECT_EQ(Deadline::earlier(soon, late).at_monotonic_ns(), 1'000);
  EXPECT_EQ(Deadline::earlier(late, soon).at_monotonic_ns(), 1'000);
  EXPECT_EQ(Deadline::earlier(late, Deadline::never()).at_monotonic_ns(), 2'000);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock(1'000);
  EXPECT_EQ(clock.monotonic_ns(), 1'000);
  clock.advance_ms(2);
  EXPECT_EQ(clock.monotonic_ns(), 2'001'000);
  EXPECT_EQ(clock.wall_ns(), 2'001'000);
  clock.step_wall_ns(-2'000'000);
  EXPECT_EQ(clock.wall_ns(), 1'000);
  EXPECT_EQ(clock.monotonic_ns(), 2'001'000) << "a date set back moves no deadline";
}

}  // namespace
}  // namespace ragfs
