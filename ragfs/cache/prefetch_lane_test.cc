#include "ragfs/cache/prefetch_lane.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace ragfs {
namespace {

using enum PrefetchPriority;

class PrefetchLaneTest : public ::testing::Test {
 protected:
  void open(PrefetchConfig config) {
    config.enabled = true;
    if (!paced) config.busy_reads_per_second = 0;
    ASSERT_TRUE(config.validate());
    lane = std::make_unique<PrefetchLane>(config, clock, pace);
  }
  void TearDown() override {
    go_on();
    if (lane) {
      EXPECT_TRUE(lane->stop(owner, Deadline::in_ms(20'000)));
    }
    lane.reset();
  }
  // Holds the lane's only thread until go_on().
  void hold() {
    lane->submit(owner, high, [this] {
      held = true;
      while (!free_to_go.load()) std::this_thread::yield();
    });
    while (!held.load()) std::this_thread::yield();
  }
  void go_on() { free_to_go = true; }
  void submit(PrefetchPriority priority, char name) {
    lane->submit(owner, priority, [this, name] {
      MutexLock lock(mutex);
      done += name;
    });
  }
  std::string finished() {
    EXPECT_TRUE(lane->wait_until_idle(Deadline::in_ms(20'000)));
    MutexLock lock(mutex);
    return done;
  }
  uint64_t dropped() const { return owner.read(CacheCounter::prefetch_dropped); }

  // Time passes for the lane, in which readers asked so often each millisecond, until `holds` does.
  bool pass(uint64_t reads_each_ms, const std::function<bool()>& holds) {
    constexpr int kMost = 5'000;
    for (int i = 0; i < kMost && !holds(); ++i) {
      owner.add(CacheCounter::file_hit, reads_each_ms);
      pace.advance_ms(1);
      // A tick of the lane, which nothing tells of.
      MutexLock lock(mutex);
      (void)never.wait_until(mutex, Deadline::in_ms(2));
    }
    return holds();
  }
  bool ran(char name) {
    MutexLock lock(mutex);
    return done.contains(name);
  }

  ManualClock clock;
  ManualClock pace;
  bool paced = false;
  CacheCounters owner;
  std::atomic<bool> held{false};
  std::atomic<bool> free_to_go{false};
  Mutex mutex;
  CondVar never;
  std::string done;
  std::unique_ptr<PrefetchLane> lane;
};

TEST_F(PrefetchLaneTest, HighPriorityRunsFirst) {
  open({.concurrency = 1});
  hold();
  for (const auto& [priority, name] : {std::pair{low, 'l'}, {normal, 'n'}, {high, 'h'}, {low, 'm'}, {high, 'i'}}) {
    submit(priority, name);
  }
  go_on();
  EXPECT_EQ(finished(), "hinlm");
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(PrefetchLaneTest, WhenItIsFullLowPriorityIsDroppedFirstTheOldestOfIt) {
  open({.concurrency = 1, .max_queued = 3});
  hold();
  submit(low, 'a');
  submit(low, 'b');
  submit(normal, 'n');
  submit(low, 'c');  // full: nothing is lower than it
  EXPECT_EQ(dropped(), 1U);
  submit(high, 'h');  // for a
  EXPECT_EQ(dropped(), 2U);
  submit(normal, 'o');  // for b
  submit(high, 'i');    // for n
  submit(high, 'j');    // for o
  submit(high, 'k');    // all are as high
  EXPECT_EQ(dropped(), 6U);
  EXPECT_EQ(lane->queued(), 3U);
  go_on();
  EXPECT_EQ(finished(), "hij");
}

// 30 reads in a millisecond are too many, 10 are not.
TEST_F(PrefetchLaneTest, TasksWaitWhileReadersAreBusy) {
  paced = true;
  open({.concurrency = 2, .busy_reads_per_second = 20'000});
  submit(high, 'a');
  EXPECT_TRUE(pass(30, [&] { return lane->busy(); }));
  EXPECT_FALSE(ran('a')) << "nothing begins before the readers were watched";
  submit(high, 'b');
  EXPECT_FALSE(pass(30, [&] { return ran('b') || dropped() > 0; }) && ran('b'));
  EXPECT_TRUE(lane->busy());
  EXPECT_EQ(dropped(), 2U) << "they waited for too long";
  submit(high, 'c');
  EXPECT_TRUE(pass(10, [&] { return ran('c'); })) << "readers ask less often";
  EXPECT_FALSE(lane->busy());
  EXPECT_EQ(finished(), "c");
}

TEST_F(PrefetchLaneTest, WhatAPersonAskedForIsNotGivenUpForReaders) {
  paced = true;
  open({.concurrency = 1, .busy_reads_per_second = 20'000});
  EXPECT_TRUE(pass(30, [&] {
    if (lane->queued() == 0) submit(warm, 'w');
    return lane->busy();
  }));
  submit(low, 'l');
  EXPECT_TRUE(pass(30, [&] { return dropped() == 1; }));
  EXPECT_EQ(lane->queued(), 1U);
  EXPECT_TRUE(pass(0, [&] { return ran('w'); }));
}

// A lane that nobody watched knows nothing of the readers: what was seen long ago does not count.
TEST_F(PrefetchLaneTest, AfterALongSleepItLooksAgain) {
  paced = true;
  open({.concurrency = 1, .busy_reads_per_second = 20'000});
  submit(high, 'a');
  EXPECT_TRUE(pass(0, [&] { return ran('a'); }));
  EXPECT_TRUE(pass(0, [&] { return lane->dozes(); }));
  pace.advance_ms(60'000);
  owner.add(CacheCounter::file_hit, 1'000'000'000);
  submit(high, 'b');
  EXPECT_TRUE(pass(30, [&] { return lane->busy(); }));
  EXPECT_FALSE(ran('b'));
}

TEST_F(PrefetchLaneTest, NoMoreRunAtOnceThanItIsAllowed) {
  open({.concurrency = 3, .max_queued = 1'000});
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 300; ++i) {
    lane->submit(owner, normal, [&] {
      const int running = ++now;
      int seen = most.load();
      while (seen < running && !most.compare_exchange_weak(seen, running)) {
      }
      std::this_thread::yield();
      --now;
    });
  }
  (void)finished();
  EXPECT_LE(most.load(), 3);
  EXPECT_GE(most.load(), 1);
}

TEST_F(PrefetchLaneTest, BytesAreBoundedBySeconds) {
  open({.concurrency = 1, .bytes_per_second = 10'000});
  EXPECT_TRUE(lane->goes_on(owner));
  lane->spend(9'999);
  EXPECT_TRUE(lane->goes_on(owner));
  lane->spend(5'001);
  EXPECT_FALSE(lane->goes_on(owner)) << "overdrawn by 5,000";
  EXPECT_EQ(dropped(), 1U);
  clock.advance_ms(499);
  EXPECT_FALSE(lane->goes_on(owner));
  clock.advance_ms(2);
  EXPECT_TRUE(lane->goes_on(owner));
  clock.advance_ms(60'000);
  lane->spend(10'001);
  EXPECT_FALSE(lane->goes_on(owner)) << "what was not used in a minute is not saved up";
}

TEST_F(PrefetchLaneTest, StoppingDropsWhatWaitsAndWaitsForWhatRunsWithinABound) {
  open({.concurrency = 1});
  CacheCounters other;
  hold();
  submit(high, 'a');
  lane->submit(other, low, [this] {
    MutexLock lock(mutex);
    done += 'o';
  });
  EXPECT_FALSE(lane->stop(owner, Deadline::in_ms(20))) << "one runs";
  EXPECT_EQ(dropped(), 1U);
  EXPECT_FALSE(lane->goes_on(owner)) << "what runs is told";
  submit(high, 'b');
  EXPECT_EQ(dropped(), 2U) << "nothing is taken any more";
  go_on();
  EXPECT_TRUE(lane->stop(owner, Deadline::in_ms(20'000)));
  EXPECT_EQ(finished(), "o") << "the other owner's";
  EXPECT_TRUE(lane->stop(other, Deadline::in_ms(20'000)));
}

TEST(PrefetchConfigTest, SaysWhatIsAllowed) {
  EXPECT_TRUE(PrefetchConfig().validate());
  for (const PrefetchConfig& wrong :
       {PrefetchConfig{.concurrency = 0}, PrefetchConfig{.max_queued = 0}, PrefetchConfig{.max_objects = 3},
        PrefetchConfig{.max_objects = 17}, PrefetchConfig{.busy_reads_per_second = 1'000'000'001},
        PrefetchConfig{.cooldown_ms = 0}, PrefetchConfig{.cooldown_ms = 10'001},
        PrefetchConfig{.bytes_per_second = 1}}) {
    const auto valid = wrong.validate();
    ASSERT_FALSE(valid);
    EXPECT_NE(valid.error().message.find("it must be"), std::string::npos) << valid.error().message;
  }
}

}  // namespace
}  // namespace ragfs
