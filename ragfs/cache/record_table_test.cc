#include "ragfs/cache/record_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ragfs {
namespace {

class RecordTableTest : public ::testing::Test {
 protected:
  std::atomic<uint64_t> population{0};
  RecordTable table{population};
};

TEST_F(RecordTableTest, AMutationRunsThenLeavesItsValue) {
  EXPECT_EQ(table.exact(5).value, 0U);
  table.begin({5, {}});
  EXPECT_TRUE(table.exact(5).running);
  EXPECT_TRUE(table.bucket(5).running);
  table.end({5, {}}, 9);
  EXPECT_FALSE(table.exact(5).running);
  EXPECT_EQ(table.exact(5).value, 9U);
  EXPECT_EQ(table.bucket(5).value, 9U);
  EXPECT_EQ(population.load(), 1U);
}

TEST_F(RecordTableTest, ValuesOnlyGrowAndMarksCount) {
  table.begin({5, {}});
  table.begin({5, {}});
  table.end({5, {}}, 9);
  EXPECT_TRUE(table.exact(5).running) << "the other one still runs";
  table.end({5, {}}, 7);
  EXPECT_EQ(table.exact(5).value, 9U);
  table.set({5, {}}, 3);
  EXPECT_EQ(table.exact(5).value, 9U);
}

TEST_F(RecordTableTest, ABucketIsNeverLaxerThanItsRecords) {
  constexpr uint64_t kSameBucket = uint64_t{1} << 16;
  table.set({3, {}}, 10);
  table.set({3 + kSameBucket, {}}, 20);
  EXPECT_EQ(table.bucket(3).value, 20U);
  EXPECT_EQ(table.exact(3).value, 10U);
  EXPECT_TRUE(table.drop(3 + kSameBucket, 20));
  EXPECT_EQ(table.bucket(3).value, 10U);
  table.begin({3 + kSameBucket, {}});
  EXPECT_TRUE(table.bucket(3).running);
  EXPECT_FALSE(table.exact(3).running);
}

TEST_F(RecordTableTest, DropsOnlyItsOwnValueNothingRunningNothingMarked) {
  table.set({5, {}}, 9);
  EXPECT_FALSE(table.drop(5, 8));
  table.begin({5, {}});
  EXPECT_FALSE(table.drop(5, 9));
  table.unmark(5);
  table.mark({5, {}}, 100, 7);
  EXPECT_FALSE(table.drop(5, 9));
  EXPECT_EQ(table.expire_marks(99), 1U);
  EXPECT_FALSE(table.drop(5, 9));
  EXPECT_EQ(table.expire_marks(100), 0U);
  EXPECT_TRUE(table.drop(5, 9));
  EXPECT_EQ(population.load(), 0U);
  EXPECT_FALSE(table.drop(5, 9));
}

TEST_F(RecordTableTest, AMarkWithoutAMutationGoesWithItsTime) {
  table.mark({5, {}}, 100, 7);
  EXPECT_EQ(table.size(), 1U);
  EXPECT_EQ(table.marked(), 1U);
  table.mark({5, {}}, 50, 7);  // an older doubt does not shorten it
  EXPECT_EQ(table.expire_marks(99), 1U);
  EXPECT_EQ(table.expire_marks(100), 0U);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(RecordTableTest, AnAbandonedMutationLeavesNothing) {
  table.begin({5, {}});
  table.unmark(5);
  EXPECT_EQ(table.size(), 0U);
  table.set({5, {}}, 9);
  table.begin({5, {}});
  table.unmark(5);
  EXPECT_EQ(table.exact(5).value, 9U);
}

TEST_F(RecordTableTest, DropThroughLeavesWhatIsNewerRunningOrMarked) {
  for (uint64_t id = 1; id <= 10; ++id) table.set({id, {}}, id);
  table.begin({2, {}});
  table.mark({3, {}}, 100, 7);
  EXPECT_EQ(table.drop_through(5), 3U);  // 1, 4, 5
  EXPECT_EQ(table.size(), 7U);
  EXPECT_EQ(table.exact(2).value, 2U);
  EXPECT_EQ(table.exact(6).value, 6U);
}

TEST_F(RecordTableTest, FoldsIntoTheParentFirst) {
  const uint64_t ancestors[] = {100, 200};
  table.set({5, ancestors}, 9);
  table.set({6, {}}, 10);  // at its scope's root: cannot fold
  table.set({7, ancestors}, 11);
  table.begin({7, ancestors});  // runs: must not fold
  std::vector<std::pair<uint64_t, uint64_t>> folded;
  const size_t dropped = table.fold(10, [&](const RecordName& parent, uint64_t value) {
    EXPECT_EQ(table.exact(5).value, 9U) << "the child is there until the parent is set";
    ASSERT_EQ(parent.ancestors.size(), 1U);
    EXPECT_EQ(parent.ancestors[0], 100U);
    folded.emplace_back(parent.id, value);
  });
  EXPECT_EQ(dropped, 1U);
  EXPECT_EQ(folded, (std::vector<std::pair<uint64_t, uint64_t>>{{200, 9}}));
  EXPECT_EQ(table.exact(5).value, 0U);
  EXPECT_EQ(table.exact(6).value, 10U);
  EXPECT_EQ(table.exact(7).value, 11U);
}

TEST_F(RecordTableTest, ARecordThatChangedDuringTheFoldStays) {
  const uint64_t ancestors[] = {100};
  table.set({5, ancestors}, 9);
  EXPECT_EQ(table.fold(10, [&](const RecordName&, uint64_t) { table.set({5, ancestors}, 12); }), 0U);
  EXPECT_EQ(table.exact(5).value, 12U);
}

TEST_F(RecordTableTest, CountsAreRightAfterManyThreads) {
  constexpr uint64_t kIds = 64;
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 1; t <= 4; ++t) {
      threads.emplace_back([this, t] {
        for (uint64_t i = 0; i < 5'000; ++i) {
          const uint64_t id = (i * t) % kIds;
          table.begin({id, {}});
          EXPECT_TRUE(table.bucket(id).running);
          table.end({id, {}}, i + 1);
          if (i % 3 == 0) table.drop(id, table.exact(id).value);
        }
      });
    }
  }
  for (uint64_t id = 0; id < kIds; ++id) EXPECT_FALSE(table.exact(id).running);
  EXPECT_EQ(population.load(), table.size());
  table.drop_through(UINT64_MAX);
  EXPECT_EQ(population.load(), 0U);
}

}  // namespace
}  // namespace ragfs
