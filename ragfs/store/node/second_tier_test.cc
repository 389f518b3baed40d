#include "ragfs/store/node/second_tier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>

#include "ragfs/base/faulty_files.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {
namespace {

using Fault = FaultyFiles::Fault;

// A memory tier of a few objects over disks, put together as the embedded provider does.
class SecondTierTest : public testing::Test {
 protected:
  SecondTierTest() {
    std::string name = testing::TempDir() + "second_tier_XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~SecondTierTest() override {
    stop();
    std::filesystem::remove_all(directory_);
  }
  SecondTierConfig config() const {
    return {
        .disks = {{.directory = directory_, .capacity_bytes = 16 << 20, .bucket_bytes = 1 << 20, .min_free_bytes = 0}},
        .admit_all = true,
        .promote_hits = 0,
        .flush_ms = 1};
  }
  void start(const SecondTierConfig& with) {
    auto opened = SecondTier::open(
        with,
        [this](std::string_view line) {
          const MutexLock lock(log_mutex_);
          lines_.emplace_back(line);
        },
        files_);
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    tier_ = std::move(*opened);
    memory_ =
        MemoryTier::create({.capacity_bytes = 8 << 20, .max_objects = 64, .shards = 1, .sink = tier_.get()}).value();
    tier_->attach(*memory_);
  }
  void start() { start(config()); }
  void stop(Deadline deadline = Deadline::in_ms(20'000)) {
    if (tier_ == nullptr) return;
    tier_->close(deadline);
    memory_.reset();
    tier_.reset();
  }
  static uint64_t hash(const std::string& key) { return hash64(key); }
  void put(const std::string& key, const std::string& value) {
    const SecondTier::Change change(*tier_, hash(key), Deadline::in_ms(5'000));
    ASSERT_TRUE(memory_->put({.key = key, .hash = hash(key), .head = value}).has_value());
  }
  void erase(const std::string& key) {
    const SecondTier::Change change(*tier_, hash(key), Deadline::in_ms(5'000));
    memory_->erase(key, hash(key));
  }
  std::optional<std::string> get(const std::string& key) {
    std::optional<Bytes> found = memory_->get(key, hash(key));
    if (!found) found = tier_->get(key, hash(key), Deadline::in_ms(5'000));
    return found ? std::optional(found->str()) : std::nullopt;
  }
  // Pushes everything else out of memory.
  void flood(int count = 200) {
    for (int i = 0; i < count; ++i) put(fmt::format("flood{}", flooded_++), "x");
  }
  bool flush() { return tier_->flush(Deadline::in_ms(20'000)); }
  double figure(std::string_view name) const {
    for (const NamedCount& count : tier_->metrics()) {
      if (count.name + count.labels == name) return static_cast<double>(count.value);
    }
    return -1;
  }
  bool logged(std::string_view part) {
    const MutexLock lock(log_mutex_);
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& l) { return l.find(part) != l.npos; });
  }
  bool in_memory(const std::string& key) { return memory_->contains(key, hash(key)); }

  std::string directory_;
  FaultyFiles files_;
  std::unique_ptr<SecondTier> tier_;
  std::unique_ptr<MemoryTier> memory_;
  int flooded_ = 0;
  Mutex log_mutex_;
  std::vector<std::string> lines_ RAGFS_GUARDED_BY(log_mutex_);
};

using CaseE05 = SecondTierTest;
using CaseE01 = SecondTierTest;
using CaseD11 = SecondTierTest;

TEST_F(SecondTierTest, WhatMemoryEvictsIsReadFromTheDisk) {
  start();
  for (int i = 0; i < 40; ++i) put(fmt::format("k{}", i), fmt::format("value{}", i));
  flood();
  ASSERT_TRUE(flush());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(get(fmt::format("k{}", i)), fmt::format("value{}", i)) << i;
  EXPECT_GE(figure("disk_hits_total"), 40);
}

TEST_F(SecondTierTest, WhatWaitsForItsBucketIsReadFromTheQueue) {
  SecondTierConfig with = config();
  with.flush_ms = 60'000;
  start(with);
  put("k", "value");
  flood();
  EXPECT_EQ(get("k"), "value");
  EXPECT_GE(figure("disk_queue_hits_total"), 1);
}

TEST_F(SecondTierTest, ASecondTouchIsNeededUnlessTheObjectWasHit) {
  SecondTierConfig with = config();
  with.admit_all = false;
  start(with);
  put("once", "v");
  put("hit", "v");
  EXPECT_EQ(get("hit"), "v");
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("once"), std::nullopt);
  EXPECT_EQ(get("hit"), "v");
  put("once", "v");  // its second time
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("once"), "v");
}

TEST_F(SecondTierTest, AHotObjectGoesBackToMemory) {
  SecondTierConfig with = config();
  with.promote_hits = 2;
  start(with);
  put("k", "v");
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("k"), "v");
  EXPECT_FALSE(in_memory("k"));
  EXPECT_EQ(get("k"), "v");
  EXPECT_TRUE(in_memory("k"));
  EXPECT_EQ(figure("disk_promotions_total"), 1);
}

// The value on the disk, in the queue or in a bucket being written is older: it is never found again.
TEST_F(CaseE05, AnUpdateThatIsNotAdmittedLeavesNothingOlderBehind) {
  SecondTierConfig with = config();
  with.admit_all = false;
  start(with);
  put("k", "v1");
  EXPECT_EQ(get("k"), "v1");
  flood();
  ASSERT_TRUE(flush());
  put("k", "v2");
  memory_->erase("k", hash("k"));  // as an eviction that is not admitted
  EXPECT_EQ(get("k"), std::nullopt);
  stop();
  start(with);
  EXPECT_EQ(get("k"), std::nullopt);
}

TEST_F(CaseE05, AnUpdateWhileTheOldValueIsBeingWritten) {
  start();
  const auto paused = PausePoints::arm("disk.before_admit");
  put("k", "v1");
  flood();
  ASSERT_TRUE(paused->wait_for_arrival());
  put("k", "v2");
  memory_->erase("k", hash("k"));
  EXPECT_EQ(get("k"), std::nullopt);
  paused->release();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("k"), std::nullopt);
}

TEST_F(CaseE05, AnEvictionThatMeetsAChangeIsRefused) {
  start();
  const uint64_t before = tier_->before_eviction();
  put("k", "v2");
  tier_->evicted({.key = "k", .hash = hash("k"), .value = "v1"}, before);
  memory_->erase("k", hash("k"));
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_EQ(figure("disk_offload_changed_total"), 1);
}

TEST_F(CaseE05, APromotionThatMeetsAChangeIsRefused) {
  SecondTierConfig with = config();
  with.promote_hits = 1;
  start(with);
  put("k", "v1");
  flood();
  ASSERT_TRUE(flush());
  const auto paused = PausePoints::arm("disk.read");
  std::jthread reader([&] { EXPECT_EQ(tier_->get("k", hash("k"), Deadline::in_ms(20'000)).value().view(), "v1"); });
  ASSERT_TRUE(paused->wait_for_arrival());
  erase("k");
  paused->release();
  reader.join();
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_EQ(figure("disk_promotions_refused_total"), 1);
}

TEST_F(SecondTierTest, AnOrderlyRestartKeepsWhatMemoryHeldAndTheIncarnation) {
  start();
  for (int i = 0; i < 50; ++i) put(fmt::format("k{}", i), fmt::format("value{}", i));
  put("gone", "old");
  erase("gone");
  const std::string incarnation = tier_->incarnation();
  stop();
  start();
  EXPECT_EQ(tier_->incarnation(), incarnation);
  EXPECT_FALSE(incarnation.empty());
  for (int i = 0; i < 50; ++i) EXPECT_EQ(get(fmt::format("k{}", i)), fmt::format("value{}", i)) << i;
  EXPECT_EQ(get("gone"), std::nullopt);
}

TEST_F(SecondTierTest, AFullQueueShedsAndCounts) {
  SecondTierConfig with = config();
  with.queue_records = 10;
  with.flush_ms = 60'000;
  start(with);
  flood(500);
  EXPECT_EQ(figure("disk_queue_objects"), 10);
  EXPECT_GT(figure("disk_offload_shed_total"), 300);
}

TEST_F(SecondTierTest, FewObjectsAreWrittenToo) {
  start();
  put("k", "v");
  flood(80);
  const Deadline soon = Deadline::in_ms(20'000);
  while (figure("disk_queue_objects") > 0 && !soon.expired()) std::this_thread::yield();
  EXPECT_EQ(get("k"), "v");
  EXPECT_GE(figure("disk_buckets_written_total"), 1);
}

TEST_F(CaseD11, ADirectoryThatIsFencedTakesOnlyItsShareAway) {
  const std::string second = directory_ + "_second";
  std::filesystem::create_directory(second);
  SecondTierConfig with = config();
  with.disks.push_back(with.disks[0]);
  with.disks[1].directory = second;
  start(with);
  for (int i = 0; i < 60; ++i) put(fmt::format("k{}", i), "v");
  flood();
  ASSERT_TRUE(flush());
  tier_->lanes()[0]->disk()->fence().fence("operator", DiskOp::write, EIO);
  int hits = 0;
  for (int i = 0; i < 60; ++i) hits += get(fmt::format("k{}", i)).has_value() ? 1 : 0;
  EXPECT_GT(hits, 10);
  EXPECT_LT(hits, 50);
  EXPECT_EQ(tier_->warnings().size(), 1u);
  stop();
  std::filesystem::remove_all(second);
}

// After the fence no call reaches the directory, by whatever way, with objects that memory holds and others.
TEST_F(CaseE01, AFenceReleasesTheQueueAndNothingTouchesTheDisk) {
  SecondTierConfig with = config();
  with.flush_ms = 60'000;
  start(with);
  EXPECT_EQ(figure(fmt::format("disk_fenced{{dir=\"{}\"}}", directory_)), 0);
  put("k", "v");
  flood();
  ASSERT_TRUE(flush());
  put("waiting", "v");
  flood();
  EXPECT_GT(figure("disk_queue_objects"), 0);
  tier_->lanes()[0]->disk()->fence().report(DiskOp::write, EROFS, "x.data");
  const Deadline soon = Deadline::in_ms(20'000);
  while (!(logged("action=release_offload_queue") && tier_->lanes()[0]->disk()->objects() == 0) && !soon.expired()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(figure("disk_queue_objects"), 0);
  EXPECT_EQ(figure(fmt::format("disk_fenced{{dir=\"{}\"}}", directory_)), 1);
  files_.reset_calls();
  put("m", "v");
  EXPECT_EQ(get("m"), "v");
  EXPECT_EQ(get("k"), std::nullopt);
  put("k", "v2");
  erase("waiting");
  flood();
  EXPECT_TRUE(flush());
  EXPECT_EQ(files_.calls_except("close"), 0);
}

// An eviction looks at the disk, the fence falls and the queue is released, and then the offer comes.
TEST_F(SecondTierTest, AnOfferThatComesAfterTheReleaseIsRefused) {
  start();
  DiskLane& lane = *tier_->lanes().front();
  lane.queue().release();
  const DiskRecord late{.hash = hash("k"), .key = "k", .value = Bytes::copy("v")};
  EXPECT_FALSE(lane.queue().has_room(1));
  EXPECT_EQ(lane.offer(late, tier_->before_eviction()), OffloadQueue::Offer::full);
  EXPECT_EQ(lane.queue().records(), 0U);
}

TEST_F(SecondTierTest, WithoutTheRuleAFenceKeepsTheQueue) {
  SecondTierConfig with = config();
  with.flush_ms = 60'000;
  start(with);
  flood();
  const double waiting = figure("disk_queue_objects");
  EXPECT_GT(waiting, 0);
  const FenceRuleSwitch off(FenceRule::kReleaseQueue);
  tier_->lanes()[0]->disk()->fence().fence("operator", DiskOp::write, EIO);
  const Deadline soon = Deadline::in_ms(20'000);
  while (files_.open_fds() > 0 && !soon.expired()) std::this_thread::yield();  // all other effects are done
  EXPECT_EQ(figure("disk_queue_objects"), waiting);
}

TEST_F(CaseE01, AFenceWhileManyCallsAreInFlight) {
  SecondTierConfig with = config();
  with.disks[0].read_threads = 16;
  start(with);
  for (int i = 0; i < 200; ++i) put(fmt::format("k{}", i), fmt::format("value{}", i));
  flood();
  ASSERT_TRUE(flush());
  std::atomic<bool> stop_now{false};
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !stop_now.load(); ++i) {
        const std::string key = fmt::format("k{}", i % 200);
        const auto found = tier_->get(key, hash(key), Deadline::in_ms(5'000));
        if (found && found->view() != fmt::format("value{}", i % 200)) ++wrong;
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; !stop_now.load(); ++i) put(fmt::format("new{}", i), "x");
  });
  const uint64_t before = tier_->lanes()[0]->disk()->count(DiskCounter::hits);
  const Deadline soon = Deadline::in_ms(20'000);
  while (tier_->lanes()[0]->disk()->count(DiskCounter::hits) < before + 100 && !soon.expired())
    std::this_thread::yield();
  files_.add(Fault("openat", EROFS).times(-1));
  files_.add(Fault("pwrite", EROFS).times(-1));
  while (!logged("action=release_offload_queue") && !soon.expired()) std::this_thread::yield();
  EXPECT_TRUE(tier_->lanes()[0]->disk()->fence().fenced());
  EXPECT_EQ(tier_->get("k1", hash("k1"), Deadline::in_ms(5'000)), std::nullopt);
  stop_now = true;
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(tier_->lanes()[0]->disk()->fence().reason().sys_errno, EROFS);
}

TEST_F(SecondTierTest, ADirectoryThatCannotBeUsedIsLeftOutAndSaysWhy) {
  SecondTierConfig with = config();
  with.disks[0].directory = directory_ + "/missing";
  start(with);
  put("k", "v");
  EXPECT_EQ(get("k"), "v");
  flood();
  EXPECT_EQ(get("k"), std::nullopt);
  EXPECT_TRUE(logged("action=disk_not_used"));
  ASSERT_EQ(tier_->warnings().size(), 1u);
  EXPECT_EQ(tier_->incarnation(), "");
}

// fsfreeze, a stopped FUSE server: the writer hangs; readers, changes and the end do not.
TEST_F(SecondTierTest, AHungWriteHoldsNobodyUp) {
  SecondTierConfig with = config();
  with.disks[0].hang_timeout_ms = 20;
  start(with);
  put("k", "v");
  flood();
  ASSERT_TRUE(flush());
  const auto hung = PausePoints::arm("hung_disk");
  files_.add(Fault("fdatasync").run([] { PausePoints::reach("hung_disk"); }));
  flood();
  ASSERT_TRUE(hung->wait_for_arrival());
  const Deadline soon = Deadline::in_ms(20'000);
  while (tier_->lanes()[0]->disk()->state() != DiskState::suspended && !soon.expired()) std::this_thread::yield();
  EXPECT_EQ(tier_->lanes()[0]->disk()->state(), DiskState::suspended);
  EXPECT_EQ(get("k"), std::nullopt);
  put("k", "v2");
  EXPECT_EQ(get("k"), "v2");
  hung->release();
  while (tier_->lanes()[0]->disk()->state() != DiskState::serving && !soon.expired()) std::this_thread::yield();
  ASSERT_TRUE(flush());
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("k"), "v2");
}

// A write that does not come back holds the memory of its objects no longer than their tasks last; when it does come
// back, what it wrote of them is not readable.
TEST_F(SecondTierTest, ATaskThatIsNotFinishedInTimeIsLetGo) {
  SecondTierConfig with = config();
  with.task_timeout_ms = 60;
  with.flush_ms = 1;
  start(with);
  const auto hung = PausePoints::arm("hung_disk");
  files_.add(Fault("fdatasync").run([] { PausePoints::reach("hung_disk"); }));
  put("k", "v");
  flood();
  ASSERT_TRUE(hung->wait_for_arrival());
  const double open_tasks = figure("disk_queue_objects");
  EXPECT_GT(open_tasks, 0);
  const Deadline soon = Deadline::in_ms(20'000);
  while (figure("disk_queue_objects") > 0 && !soon.expired()) std::this_thread::yield();
  EXPECT_EQ(figure("disk_queue_objects"), 0);
  EXPECT_EQ(figure("disk_queue_bytes"), 0);
  EXPECT_GE(figure("disk_offload_expired_total"), open_tasks);
  EXPECT_TRUE(logged("action=offload_tasks_expired"));
  EXPECT_EQ(get("k"), std::nullopt);
  hung->release();
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("k"), std::nullopt) << "the write that came late completed a task that had ended";
  put("k", "v2");
  EXPECT_EQ(get("k"), "v2") << "nobody keeps its key from being changed";
}

TEST_F(SecondTierTest, AWriteThatIsGivenUpEndsItsTasks) {
  start();
  files_.add(Fault("fdatasync", ENOSPC).times(-1));
  put("k", "v");
  flood();
  const Deadline soon = Deadline::in_ms(20'000);
  while (figure("disk_offload_write_dropped_total") == 0 && !soon.expired()) std::this_thread::yield();
  EXPECT_GT(figure("disk_offload_write_dropped_total"), 0);
  EXPECT_TRUE(flush());
  EXPECT_EQ(figure("disk_queue_bytes"), 0);
  EXPECT_EQ(get("k"), std::nullopt);
  files_.clear();
  put("k", "v2");
  flood();
  ASSERT_TRUE(flush());
  EXPECT_EQ(get("k"), "v2");
}

TEST_F(SecondTierTest, WhatIsPutIsWrittenAtOnceWhereThatIsWanted) {
  SecondTierConfig with = config();
  with.offload_on_put = true;
  start(with);
  put("k", "v1");
  tier_->was_put("k", hash("k"));
  ASSERT_TRUE(flush());
  EXPECT_TRUE(in_memory("k"));
  EXPECT_EQ(figure("disk_offload_written_total"), 1);
  put("k", "v2");
  memory_->erase("k", hash("k"));
  EXPECT_EQ(get("k"), std::nullopt) << "the copy is older";
  put("k", "v3");
  tier_->was_put("k", hash("k"));
  ASSERT_TRUE(flush());
  memory_->erase("k", hash("k"));
  EXPECT_EQ(get("k"), "v3");
}

// Several put one key and each offers it then: what the disk has in the end is the last of them or nothing.
TEST_F(CaseE05, OffersOfPutsThatMeetEachOtherLeaveNothingOlder) {
  SecondTierConfig with = config();
  with.offload_on_put = true;
  start(with);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> latest{0};
    Mutex one_at_a_time;  // so that the last value is known
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          for (int i = 0; i < 25; ++i) {
            {
              const MutexLock lock(one_at_a_time);
              put("k", fmt::format("v{}", ++latest));
            }
            tier_->was_put("k", hash("k"));
          }
        });
      }
    }
    ASSERT_TRUE(flush());
    memory_->erase("k", hash("k"));
    const auto found = get("k");
    if (found) {
      EXPECT_EQ(*found, fmt::format("v{}", latest.load()));
    }
  }
  EXPECT_GT(figure("disk_offload_written_total"), 0);
}

}  // namespace
}  // namespace ragfs
