#include "ragfs/cache/negative_cache.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

TEST(NegativeCache, RemembersUntilItsTimeAndNoLonger) {
  ManualClock clock;
  NegativeCache cache(clock, 10);
  EXPECT_FALSE(cache.find(1));
  cache.remember(1, {.start = 7, .epoch = 9}, 100);
  clock.advance_ms(99);
  ASSERT_TRUE(cache.find(1));
  EXPECT_EQ(cache.find(1)->start, 7U);
  EXPECT_EQ(cache.find(1)->epoch, 9U);
  EXPECT_FALSE(cache.find(2));
  clock.advance_ms(1);
  EXPECT_FALSE(cache.find(1));
  EXPECT_EQ(cache.size(), 0U);
}

TEST(NegativeCache, AWallClockThatStepsChangesNothing) {
  ManualClock clock;
  NegativeCache cache(clock, 10);
  cache.remember(1, {}, 100);
  clock.step_wall_ns(-3'600'000'000'000);
  EXPECT_TRUE(cache.find(1));
  clock.advance_ms(100);
  clock.step_wall_ns(-3'600'000'000'000);
  EXPECT_FALSE(cache.find(1));
}

TEST(NegativeCache, ForgetsOneOrAll) {
  ManualClock clock;
  NegativeCache cache(clock, 10);
  for (uint64_t id = 1; id <= 5; ++id) cache.remember(id, {}, 100);
  cache.forget(3);
  cache.forget(3);
  EXPECT_EQ(cache.size(), 4U);
  EXPECT_FALSE(cache.find(3));
  EXPECT_TRUE(cache.find(4));
  cache.clear();
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_FALSE(cache.find(4));
}

TEST(NegativeCache, AFullTableTakesNothingNewUntilSomethingIsPast) {
  ManualClock clock;
  NegativeCache cache(clock, 2);
  constexpr uint64_t kSameShard = 16;
  cache.remember(kSameShard, {}, 100);
  cache.remember(2 * kSameShard, {}, 100);
  cache.remember(3 * kSameShard, {}, 100);
  EXPECT_FALSE(cache.find(3 * kSameShard));
  EXPECT_EQ(cache.size(), 2U);
  clock.advance_ms(100);
  cache.remember(3 * kSameShard, {}, 100);
  EXPECT_TRUE(cache.find(3 * kSameShard));
  EXPECT_EQ(cache.size(), 1U);
}

}  // namespace
}  // namespace ragfs
