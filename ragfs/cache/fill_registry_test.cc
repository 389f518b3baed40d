#include "ragfs/cache/fill_registry.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

TEST(FillRegistry, NumbersGrowAndStartsAreTheClock) {
  MutationTable table;
  FillRegistry fills(table, 10);
  const auto first = fills.begin();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->start, table.clock());
  table.advance_clock();
  const auto second = fills.begin();
  ASSERT_TRUE(second);
  EXPECT_GT(second->number, first->number);
  EXPECT_EQ(second->start, table.clock());
  EXPECT_EQ(fills.last_issued(), second->number);
  EXPECT_EQ(fills.running(), 2U);
}

// What settles a record: every fill up to a number has ended, in whatever order.
TEST(FillRegistry, KnowsWhenAllUpToANumberHaveEnded) {
  const MutationTable table;
  FillRegistry fills(table, 10);
  EXPECT_TRUE(fills.all_ended_through(fills.last_issued()));
  const auto a = fills.begin();
  const auto b = fills.begin();
  const auto c = fills.begin();
  ASSERT_TRUE(a && b && c);
  fills.end(*b);
  EXPECT_FALSE(fills.all_ended_through(a->number));
  EXPECT_FALSE(fills.all_ended_through(b->number));
  fills.end(*a);
  EXPECT_TRUE(fills.all_ended_through(b->number));
  EXPECT_FALSE(fills.all_ended_through(c->number));
  fills.end(*c);
  EXPECT_TRUE(fills.all_ended_through(fills.last_issued()));
  EXPECT_EQ(fills.running(), 0U);
}

TEST(FillRegistry, ANumberThatIsNotIssuedYetHasNotEnded) {
  const MutationTable table;
  FillRegistry fills(table, 10);
  const auto a = fills.begin();
  ASSERT_TRUE(a);
  fills.end(*a);
  EXPECT_FALSE(fills.all_ended_through(a->number + 1));
}

TEST(FillRegistry, SaysNoPastItsBound) {
  const MutationTable table;
  FillRegistry fills(table, 2);
  const auto a = fills.begin();
  const auto b = fills.begin();
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(fills.begin());
  fills.end(*a);
  EXPECT_TRUE(fills.begin());
}

// A fill that hangs must not let the table grow without bound.
TEST(FillRegistry, AHungFillStopsOthersAtTheBoundAndNotForEver) {
  const MutationTable table;
  FillRegistry fills(table, 10);
  const auto hung = fills.begin();
  ASSERT_TRUE(hung);
  uint64_t begun = 0;
  while (const auto fill = fills.begin()) {
    fills.end(*fill);
    ASSERT_LT(++begun, uint64_t{1} << 21);
  }
  EXPECT_GT(begun, 1'000'000U);
  fills.end(*hung);
  EXPECT_TRUE(fills.begin());
}

}  // namespace
}  // namespace ragfs
