#include "ragfs/cache/cooldown_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ragfs/base/hash.h"
#include "ragfs/cache/sequential_reads.h"

namespace ragfs {
namespace {

TEST(CooldownTableTest, LetsAKeyThroughOnceInItsTime) {
  CooldownTable table(2'000);
  EXPECT_TRUE(table.enter(mix64(1), 10));
  EXPECT_FALSE(table.enter(mix64(1), 10));
  EXPECT_FALSE(table.enter(mix64(1), 2'009));
  EXPECT_TRUE(table.enter(mix64(2), 2'009)) << "another key has its own";
  EXPECT_TRUE(table.enter(mix64(1), 2'010));
  EXPECT_FALSE(table.enter(mix64(1), 2'011));
}

TEST(CooldownTableTest, TheMillisecondsMayWrapAround) {
  CooldownTable table(2'000);
  const int64_t before = (int64_t{1} << 32) - 100;
  EXPECT_TRUE(table.enter(mix64(7), before));
  EXPECT_FALSE(table.enter(mix64(7), before + 1'000));
  EXPECT_TRUE(table.enter(mix64(7), before + 2'000));
}

TEST(CooldownTableTest, OfManyAtOnceOneGetsThrough) {
  CooldownTable table(1'000);
  std::atomic<int> through{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) through += table.enter(mix64(3), 500) ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(through.load(), 1);
}

TEST(SequentialReadsTest, KnowsWhatWasReadBeforeInTheSameDirectory) {
  SequentialReads reads;
  EXPECT_EQ(reads.note(1, "a"), "");
  EXPECT_EQ(reads.note(1, "b"), "a");
  EXPECT_EQ(reads.note(2, "x"), "") << "another directory";
  EXPECT_EQ(reads.note(1, "b"), "") << "the same file again is no sequence";
  EXPECT_EQ(reads.note(1, "c"), "b");
  EXPECT_EQ(reads.note(2, "y"), "x");
}

}  // namespace
}  // namespace ragfs
