#include "ragfs/base/latency_histogram.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

TEST(LatencyHistogram, CountsEveryLatencyOnceInTheBucketBelowWhoseBoundItIs) {
  LatencyHistogram histogram;
  for (const int64_t ns : {-5L, 0L, 127L, 128L, 1'000'000L, INT64_MAX}) histogram.add(ns);
  const LatencySnapshot seen = histogram.snapshot();
  EXPECT_EQ(seen.count, 6U);
  EXPECT_EQ(seen.buckets[0], 3U);
  EXPECT_EQ(seen.buckets[1], 1U);
  EXPECT_EQ(seen.buckets[latency_bucket_of(1'000'000)], 1U);
  EXPECT_LT(1'000'000U, latency_bucket_bound_ns(latency_bucket_of(1'000'000)));
  EXPECT_EQ(seen.buckets[kLatencyBuckets - 1], 1U);
}

TEST(LatencyHistogram, QuantilesAreBucketBounds) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.snapshot().quantile_ns(0.5), 0U);
  for (int i = 0; i < 99; ++i) histogram.add(200);
  histogram.add(50'000);
  EXPECT_EQ(histogram.snapshot().quantile_ns(0.5), 256U);
  EXPECT_EQ(histogram.snapshot().quantile_ns(0.98), 256U);
  EXPECT_EQ(histogram.snapshot().quantile_ns(0.999), 65'536U);
}

TEST(LatencyHistogram, ATimerWithoutAHistogramAddsNothing) {
  LatencyHistogram histogram;
  {
    const LatencyTimer timed(&histogram);
  }
  {
    const LatencyTimer untimed(nullptr);
  }
  EXPECT_EQ(histogram.snapshot().count, 1U);
}

}  // namespace
}  // namespace ragfs
