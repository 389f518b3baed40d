// DiskTier: what was removed or replaced stays away, in this life and the next.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/disk_tier_fixture.h"

namespace ragfs {
namespace {

using Fault = FaultyFiles::Fault;
using DiskRemovals = DiskTierTest;

TEST_F(DiskRemovals, RemovedAndReplacedObjectsStayAwayAfterARestart) {
  start();
  ASSERT_TRUE(write({record("gone", "old"), record("new", "old")}).has_value());
  EXPECT_TRUE(erase("gone"));
  EXPECT_TRUE(erase("new"));
  ASSERT_TRUE(write({record("new", "now")}).has_value());
  restart();
  EXPECT_EQ(read("gone"), std::nullopt);
  EXPECT_EQ(read("new"), "now");
}

// A removal that meets a write at any step: neither this life nor the next one finds the object.
TEST_F(DiskRemovals, WhatIsRemovedWhileItIsWrittenStaysAway) {
  start();
  for (const char* step : {"disk.before_data", "disk.before_datasync", "disk.before_meta", "disk.before_rename",
                           "disk.after_rename", "disk.before_admit"}) {
    const auto paused = PausePoints::arm(step);
    const std::vector<DiskRecord> records = {record(fmt::format("gone at {}", step), "old"),
                                             record(fmt::format("kept at {}", step), "v")};
    std::jthread writer([&] { EXPECT_TRUE(write(records).has_value()) << step; });
    ASSERT_TRUE(paused->wait_for_arrival()) << step;
    EXPECT_TRUE(tier_->erase(records[0].hash, records[0].generation, Deadline::in_ms(10'000)));
    paused->release();
    writer.join();
    EXPECT_EQ(read(records[0].key), std::nullopt) << step;
    EXPECT_EQ(read(records[1].key), "v") << step;
    restart();
    EXPECT_EQ(read(records[0].key), std::nullopt) << step;
    EXPECT_EQ(read(records[1].key), "v") << step;
  }
}

// A removal between the eviction of a bucket from the index and from the directory, then a crash.
TEST_F(DiskRemovals, WhatIsRemovedWhileItsBucketIsEvictedStaysAway) {
  DiskTierConfig with = config();
  with.capacity_bytes = 4 << 20;
  ASSERT_TRUE(start(with).has_value());
  const auto paused = PausePoints::arm("disk.evict");
  ASSERT_TRUE(write({record("gone", "old")}).has_value());
  std::jthread writer([&] {
    for (int i = 0; i < 5; ++i) write({record(fmt::format("k{}", i), std::string(900'000, 'x'))});
  });
  ASSERT_TRUE(paused->wait_for_arrival());
  EXPECT_TRUE(tier_->erase(hash64(std::string_view("gone")), generation_, Deadline::in_ms(10'000)));
  const std::string aside = directory_ + "_crash";
  std::filesystem::copy(directory_, aside);  // as kill -9 leaves it
  paused->release();
  writer.join();
  tier_.reset();
  std::filesystem::remove_all(directory_);
  std::filesystem::rename(aside, directory_);
  start();
  EXPECT_EQ(read("gone"), std::nullopt);
}

TEST_F(DiskRemovals, WithoutTheLogOfRemovalsNothingOldIsServed) {
  start();
  ASSERT_TRUE(write({record("gone", "old"), record("kept", "v")}).has_value());
  ASSERT_TRUE(erase("gone"));
  tier_->close(Deadline::in_ms(5'000));
  tier_.reset();
  std::filesystem::remove(directory_ + "/TOMBSTONES");
  start();
  EXPECT_EQ(read("gone"), std::nullopt);
  EXPECT_EQ(read("kept"), std::nullopt);
  restart();  // nor by the start after that
  EXPECT_EQ(read("gone"), std::nullopt);
  EXPECT_FALSE(only_file(".data.bad").empty());
}

// A copy that could not be read is given up; its key is removed; then the disk reads again.
TEST_F(DiskRemovals, WhatWasDroppedAfterABadReadStaysAwayWhenTheDiskReadsAgain) {
  DiskTierConfig with = config();
  with.direct_io = false;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("k", "old")}).has_value());
  files_.add(Fault("pread").at_most(10));
  EXPECT_EQ(read("k"), std::nullopt);
  EXPECT_TRUE(erase("k"));
  restart();
  EXPECT_EQ(read("k"), std::nullopt);
}

// Its bucket lists it still, so its removal is acknowledged only when the log has it.
TEST_F(DiskRemovals, ARemovalOfWhatCouldNotBeReadWaitsForTheLog) {
  DiskTierConfig with = config();
  with.direct_io = false;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("k", "old")}).has_value());
  const auto log = PausePoints::arm("disk.tombstone");
  files_.add(Fault("pread").at_most(10));
  EXPECT_EQ(read("k"), std::nullopt);
  EXPECT_EQ(read("k"), std::nullopt) << "nor when the disk reads again";
  EXPECT_FALSE(tier_->contains(hash64(std::string_view("k")))) << "it may be written anew";
  EXPECT_FALSE(tier_->erase(hash64(std::string_view("k")), generation_, Deadline::in_ms(20)));
  log->release();
}

// A compaction that was asked for while there was no bucket, and runs when there is one whose object was removed.
TEST_F(DiskRemovals, ACompactionThatComesLateKeepsWhatWasRemovedSince) {
  DiskTierConfig with = config();
  with.most_tombstones = 16;
  ASSERT_TRUE(start(with).has_value());
  std::vector<DiskRecord> records;
  for (int i = 0; i < 34; ++i) records.push_back(record(fmt::format("k{}", i), "x"));
  ASSERT_TRUE(write(records).has_value());
  const auto evictor = PausePoints::arm("disk.evict");
  for (int i = 0; i < 33; ++i) ASSERT_TRUE(erase(records[static_cast<size_t>(i)].key));
  ASSERT_TRUE(evictor->wait_for_arrival());  // the log is far over its bound: the bucket goes
  const auto log = PausePoints::arm("disk.tombstone");
  EXPECT_FALSE(tier_->erase(records[33].hash, generation_, Deadline::in_ms(20)));
  ASSERT_TRUE(log->wait_for_arrival());
  const auto asked = PausePoints::arm("disk.compact");
  evictor->release();
  ASSERT_TRUE(asked->wait_for_arrival());  // in its next round, which the last removal asked for
  ASSERT_EQ(tier_->buckets(), 0u);
  ASSERT_TRUE(write({record("gone", "old")}).has_value());
  EXPECT_FALSE(tier_->erase(hash64(std::string_view("gone")), tier_->latest_generation(), Deadline::in_ms(20)));
  log->release();
  const Deadline soon = Deadline::in_ms(20'000);
  while (tier_->tombstones().pending() > 0 && !soon.expired()) std::this_thread::yield();
  asked->release();
  restart();
  EXPECT_EQ(read("gone"), std::nullopt);
}

TEST_F(DiskRemovals, TheLogOfRemovalsIsCompactedAndForgetsNothingThatCounts) {
  DiskTierConfig with = config();
  with.most_tombstones = 64;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("gone", "old"), record("kept", "v")}).has_value());
  ASSERT_TRUE(tier_->erase(hash64(std::string_view("gone")), generation_, Deadline::in_ms(10'000)));
  for (int i = 0; i < 100; ++i) {
    const std::string key = fmt::format("k{}", i);
    ASSERT_TRUE(write({record(key, "x")}).has_value());
    ASSERT_TRUE(erase(key));
  }
  restart();
  EXPECT_EQ(read("gone"), std::nullopt);
  EXPECT_EQ(read("k99"), std::nullopt);
}

}  // namespace
}  // namespace ragfs
