#include "ragfs/cache/read_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace ragfs {
namespace {

TEST(ReadLane, DoesEachPieceOnce) {
  ReadLane lane(4);
  for (const size_t count : {0U, 1U, 3U, 1000U}) {
    std::vector<std::atomic<int>> done(count);
    lane.for_each(count, [&](size_t i) { ++done[i]; });
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(done[i].load(), 1) << i;
  }
}

TEST(ReadLane, RunsNoMoreThanItsWidthAtOnce) {
  ReadLane lane(3);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  lane.for_each(200, [&](size_t) {
    const int running = ++now;
    int seen = most.load();
    while (seen < running && !most.compare_exchange_weak(seen, running)) {
    }
    std::this_thread::yield();
    --now;
  });
  EXPECT_LE(most.load(), 3);
}

TEST(ReadLane, CallersAreNotHeldUpByEachOther) {
  ReadLane lane(2);
  std::atomic<bool> let_go{false};
  std::atomic<int> waiting{0};
  std::thread stuck([&] {
    lane.for_each(2, [&](size_t) {
      ++waiting;
      while (!let_go.load()) std::this_thread::yield();
    });
  });
  while (waiting.load() < 2) std::this_thread::yield();  // the only helper is taken
  std::atomic<int> done{0};
  lane.for_each(10, [&](size_t) { ++done; });
  EXPECT_EQ(done.load(), 10);
  let_go = true;
  stuck.join();
}

TEST(ReadLane, ManyCallersAtOnce) {
  ReadLane lane(4);
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) lane.for_each(20, [&](size_t) { ++done; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done.load(), 8U * 50 * 20);
}

}  // namespace
}  // namespace ragfs
