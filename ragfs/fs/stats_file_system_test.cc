#include "ragfs/fs/stats_file_system.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

PathView at(std::string_view path) { return PathView::from_normal(path); }

class StatsTest : public ::testing::Test {
 protected:
  StatsTest()
      : backend_(std::make_shared<TestingFileSystem>()),
        inner_(std::make_shared<StatsFileSystem>(backend_)),
        outer_(inner_) {
    backend_->put("/f", "data");
  }

  OperationSnapshot outer(Operation operation) const { return outer_.stats().snapshot(operation); }
  OperationSnapshot inner(Operation operation) const { return inner_->stats().snapshot(operation); }

  std::shared_ptr<TestingFileSystem> backend_;
  std::shared_ptr<StatsFileSystem> inner_;
  StatsFileSystem outer_;
  Context ctx_;
};

TEST_F(StatsTest, EveryMethodReachesTheBackendAndIsCounted) {
  EXPECT_TRUE(outer_.create(ctx_, at("/c")));
  EXPECT_TRUE(outer_.mkdir(ctx_, at("/d"), 0755));
  EXPECT_TRUE(outer_.ensure_parent_dirs(ctx_, at("/e/x"), 0755));
  EXPECT_TRUE(outer_.remove(ctx_, at("/c")));
  EXPECT_TRUE(outer_.remove_all(ctx_, at("/e")));
  EXPECT_EQ(outer_.read(ctx_, at("/f"), 1, 2)->view(), "at");
  EXPECT_EQ(outer_.read_file(ctx_, at("/f"))->data.view(), "data");
  EXPECT_EQ(outer_.write(ctx_, at("/f"), "more", 0, WriteFlag::append)->bytes, 4U);
  EXPECT_FALSE(outer_.compare_and_write(ctx_, at("/f"), "", ""));
  EXPECT_FALSE(outer_.compare_and_remove(ctx_, at("/f"), ""));
  EXPECT_TRUE(outer_.truncate(ctx_, at("/f"), 4));
  EXPECT_TRUE(outer_.touch(ctx_, at("/f")));
  EXPECT_TRUE(outer_.chmod(ctx_, at("/f"), 0600));
  EXPECT_EQ(outer_.read_dir(ctx_, PathView())->size(), 2U);
  EXPECT_EQ(outer_.read_internal_dir(ctx_, PathView())->size(), 2U);
  EXPECT_EQ(outer_.stat(ctx_, at("/f"))->size, 4U);
  EXPECT_TRUE(*outer_.exists(ctx_, at("/f")));
  EXPECT_TRUE(outer_.version(ctx_, at("/f")));
  EXPECT_EQ(outer_.resolve(ctx_, at("/f"))->text(), "/f");
  EXPECT_TRUE(outer_.copy(ctx_, at("/f"), at("/g")));
  EXPECT_TRUE(outer_.rename(ctx_, at("/g"), at("/h")));
  EXPECT_TRUE(outer_.replace(ctx_, at("/h"), at("/f")));
  EXPECT_EQ(outer_.tree(ctx_, PathView(), {})->size(), 2U);
  EXPECT_EQ(outer_.glob(ctx_, PathView(), "f", {})->entries.size(), 1U);
  EXPECT_TRUE(outer_.grep(ctx_, at("/f"), {.pattern = "data"}, [](GrepMatch&&) { return true; }));
  for (const OperationSnapshot& of : outer_.stats().snapshot()) {
    EXPECT_EQ(of.count, of.operation == Operation::read ? 2U : 1U) << operation_name(of.operation);
    EXPECT_EQ(inner(of.operation).count, of.count) << operation_name(of.operation);
    EXPECT_GE(of.timed, 1U) << operation_name(of.operation);
  }
  EXPECT_EQ(outer_.traits().type, "testingfs");
}

TEST_F(StatsTest, ErrorsAreCountedByKind) {
  EXPECT_FALSE(outer_.read(ctx_, at("/none"), 0, 0));
  EXPECT_FALSE(outer_.stat(ctx_, at("/none")));
  EXPECT_FALSE(outer_.read(ctx_, PathView(), 0, 0));
  EXPECT_EQ(outer(Operation::read).errors, 2U);
  EXPECT_EQ(outer(Operation::stat).errors, 1U);
  EXPECT_EQ(outer_.stats().errors(ErrorCode::not_found), 2U);
  EXPECT_EQ(outer_.stats().errors(ErrorCode::is_a_directory), 1U);
  EXPECT_EQ(outer_.stats().errors(ErrorCode::io), 0U);
}

TEST_F(StatsTest, CountsOfManyThreadsAreExact) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 1000; ++call) {
        Context ctx;
        EXPECT_TRUE(outer_.read(ctx, at("/f"), 0, 0));
        EXPECT_FALSE(outer_.stat(ctx, at("/none")));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(outer(Operation::read).count, 8000U);
  EXPECT_EQ(inner(Operation::read).count, 8000U);
  EXPECT_EQ(outer(Operation::stat).errors, 8000U);
  EXPECT_EQ(outer_.stats().errors(ErrorCode::not_found), 8000U);
  // One in 64 of each thread, or a little more where threads share a stripe.
  EXPECT_GE(outer(Operation::read).timed, 8000U / 64);
  EXPECT_LE(outer(Operation::read).timed, 8000U / 64 + 8);
}

TEST_F(StatsTest, HotOperationsAreSampledTheOthersAllTimed) {
  for (int i = 0; i < 128; ++i) {
    EXPECT_TRUE(outer_.read(ctx_, at("/f"), 0, 0));
    EXPECT_TRUE(outer_.touch(ctx_, at("/f")));
  }
  const OperationSnapshot read = outer(Operation::read);
  EXPECT_EQ(read.timed, 2U);
  EXPECT_EQ(read.total_ns, read.avg_ns * 128);
  EXPECT_LE(read.min_ns, read.avg_ns);
  EXPECT_LE(read.avg_ns, read.max_ns);
  EXPECT_EQ(std::accumulate(read.buckets.begin(), read.buckets.end(), uint64_t{0}), 2U);
  EXPECT_EQ(outer(Operation::touch).timed, 128U);
  EXPECT_EQ(inner(Operation::touch).timed, 128U);
  EXPECT_EQ(ctx_.sampled_start_ns, 0);
}

TEST_F(StatsTest, TwoLayersShareOnePairOfClockReads) {
  EXPECT_TRUE(outer_.read(ctx_, at("/f"), 0, 0));  // the first call is a sampled one
  EXPECT_EQ(outer(Operation::read).timed, 1U);
  EXPECT_EQ(inner(Operation::read).timed, 1U);
  // The same start and the same end, so the same latency to the nanosecond.
  EXPECT_EQ(outer(Operation::read).max_ns, inner(Operation::read).max_ns);
  EXPECT_EQ(ctx_.sampled_start_ns, 0);
}

TEST_F(StatsTest, AnOuterCallThatMakesSeveralInnerOnesCoversThemAll) {
  // exists() of the testing backend asks stat(): the outer layer here is a caller that makes two inner calls.
  ctx_.sampled_start_ns = Clock::system().monotonic_ns();
  const int64_t start_ns = ctx_.sampled_start_ns;
  EXPECT_TRUE(inner_->stat(ctx_, at("/f")));
  const int64_t first_end_ns = -ctx_.sampled_start_ns;
  EXPECT_GE(first_end_ns, start_ns);
  EXPECT_TRUE(inner_->read(ctx_, at("/f"), 0, 0));
  EXPECT_GE(-ctx_.sampled_start_ns, first_end_ns);
  EXPECT_EQ(inner(Operation::stat).timed, 1U);
  EXPECT_EQ(inner(Operation::read).timed, 1U);
  EXPECT_LE(static_cast<int64_t>(inner(Operation::read).max_ns), -ctx_.sampled_start_ns - first_end_ns);
}

TEST(OperationStats, NothingTimedHasTheLargestMinimum) {
  const OperationStats stats;
  const OperationSnapshot none = stats.snapshot(Operation::grep);
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(none.avg_ns, 0U);
  EXPECT_EQ(none.min_ns, std::numeric_limits<uint64_t>::max());
}

TEST(OperationStats, LatenciesFallIntoTheirBuckets) {
  OperationStats stats;
  for (const int64_t latency_ns :
       {int64_t{-5}, int64_t{127}, int64_t{128}, int64_t{255}, int64_t{256}, int64_t{1} << 60}) {
    stats.took(Operation::read, latency_ns);
  }
  const OperationSnapshot read = stats.snapshot(Operation::read);
  EXPECT_EQ(read.buckets[0], 2U);
  EXPECT_EQ(read.buckets[1], 2U);
  EXPECT_EQ(read.buckets[2], 1U);
  EXPECT_EQ(read.buckets[kLatencyBuckets - 1], 1U);
  EXPECT_EQ(latency_bucket_bound_ns(0), 128U);
  EXPECT_EQ(read.min_ns, 0U);
}

}  // namespace
}  // namespace ragfs
