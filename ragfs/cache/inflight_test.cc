#include "ragfs/cache/inflight.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ragfs {
namespace {

using Table = InflightTable<int>;
using Role = Table::Role;

const CacheKey kKey("file:a:b:1");

TEST(InflightTable, TheFirstLeadsAndTheOthersGetItsResult) {
  Table table;
  auto leader = table.enter(kKey, 0, 5, 1);
  ASSERT_EQ(leader.role, Role::leader);
  auto follower = table.enter(kKey, 5, 6, 1);
  ASSERT_EQ(follower.role, Role::follower);
  leader.lead->publish(7);
  EXPECT_EQ(*table.follow(*follower.flight, Deadline::never()), 7);
  auto late = table.enter(kKey, 5, 6, 1);
  EXPECT_EQ(late.role, Role::follower) << "the entry stays until the leader has filled";
  leader.lead.reset();
  EXPECT_EQ(table.active(), 0U);
  EXPECT_EQ(*table.follow(*late.flight, Deadline::never()), 7);
}

TEST(InflightTable, ALeaderThatGivesNoResultFailsItsFollowers) {
  Table table;
  auto leader = table.enter(kKey, 0, 5, 1);
  auto follower = table.enter(kKey, 0, 5, 1);
  ASSERT_EQ(follower.role, Role::follower);
  leader.lead.reset();
  EXPECT_EQ(table.follow(*follower.flight, Deadline::never()).error().code, ErrorCode::internal);
  EXPECT_EQ(table.counts().leaders_aborted.load(), 1U);
  EXPECT_EQ(table.enter(kKey, 0, 5, 1).role, Role::leader);
}

TEST(InflightTable, AReaderThatKnowsOfANewerMutationLeadsAnew) {
  Table table;
  auto old = table.enter(kKey, 0, 5, 1);
  auto fresh = table.enter(kKey, 6, 6, 1);
  ASSERT_EQ(fresh.role, Role::leader);
  auto follower = table.enter(kKey, 6, 7, 1);
  ASSERT_EQ(follower.role, Role::follower);
  old.lead->publish(1);
  old.lead.reset();  // must not take the new flight's entry away
  EXPECT_EQ(table.active(), 1U);
  fresh.lead->publish(2);
  EXPECT_EQ(*table.follow(*follower.flight, Deadline::never()), 2);
}

TEST(InflightTable, AFlightOfAnotherEpochIsNotJoined) {
  Table table;
  auto old = table.enter(kKey, 0, 5, 1);
  EXPECT_EQ(table.enter(kKey, 0, 5, 2).role, Role::leader);
}

TEST(InflightTable, AForgottenFlightIsNotJoined) {
  Table table;
  auto old = table.enter(kKey, 0, 5, 1);
  auto follower = table.enter(kKey, 0, 5, 1);
  table.forget(kKey);
  EXPECT_EQ(table.active(), 0U);
  auto fresh = table.enter(kKey, 0, 5, 1);
  EXPECT_EQ(fresh.role, Role::leader);
  old.lead->publish(1);
  old.lead.reset();
  EXPECT_EQ(table.active(), 1U);
  EXPECT_EQ(*table.follow(*follower.flight, Deadline::never()), 1) << "who had joined keeps what it joined";
}

TEST(InflightTable, PastItsBoundItOverflowsAndCounts) {
  Table table({.max_flights = 2});
  auto a = table.enter(CacheKey("file:a:b:1"), 0, 5, 1);
  auto b = table.enter(CacheKey("file:a:b:2"), 0, 5, 1);
  EXPECT_EQ(table.enter(CacheKey("file:a:b:3"), 0, 5, 1).role, Role::overflow);
  EXPECT_EQ(table.enter(CacheKey("file:a:b:1"), 0, 5, 1).role, Role::follower) << "joining needs no place";
  EXPECT_EQ(table.counts().overflows.load(), 1U);
  a.lead.reset();
  EXPECT_EQ(table.enter(CacheKey("file:a:b:3"), 0, 5, 1).role, Role::leader);
}

TEST(InflightTable, AFollowersWaitIsBounded) {
  Table table({.follower_timeout_ms = 5});
  auto leader = table.enter(kKey, 0, 5, 1);
  auto follower = table.enter(kKey, 0, 5, 1);
  EXPECT_EQ(table.follow(*follower.flight, Deadline::never()).error().code, ErrorCode::timeout);
  EXPECT_EQ(table.follow(*follower.flight, Deadline::in_ms(0)).error().code, ErrorCode::timeout);
  EXPECT_EQ(table.counts().follower_timeouts.load(), 2U);
}

TEST(InflightTable, TheFirstResultIsTheOne) {
  Flight<int> flight(1, 1);
  flight.publish(fail(ErrorCode::io, "first"));
  flight.publish(2);
  ASSERT_TRUE(flight.wait(Deadline::never()));
  EXPECT_EQ(flight.result().error().code, ErrorCode::io);
}

TEST(InflightTable, ManyThreadsLeaveNothingBehind) {
  Table table;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&table, t] {
        for (int i = 0; i < 2'000; ++i) {
          const CacheKey key("file:a:b:" + std::to_string(i % 5));
          auto entry = table.enter(key, 0, 1, 1);
          if (entry.role == Role::leader) entry.lead->publish(i % 5);
          if (entry.role == Role::follower) {
            EXPECT_EQ(*table.follow(*entry.flight, Deadline::never()), i % 5);
          }
          if ((i + t) % 17 == 0) table.forget(key);
        }
      });
    }
  }
  EXPECT_EQ(table.active(), 0U);
}

}  // namespace
}  // namespace ragfs
