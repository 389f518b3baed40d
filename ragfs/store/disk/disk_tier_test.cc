#include "ragfs/store/disk/disk_tier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/disk_tier_fixture.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {
namespace {

using Fault = FaultyFiles::Fault;

// The suites of the cases that this file covers (docs/cases.md).
using CaseB01 = DiskTierTest;
using CaseB08 = DiskTierTest;
using CaseB23 = DiskTierTest;
using CaseC14 = DiskTierTest;
using CaseD05 = DiskTierTest;
using CaseD07 = DiskTierTest;
using CaseD13 = DiskTierTest;
using CaseD14 = DiskTierTest;
using CaseD20 = DiskTierTest;
using CaseE22 = DiskTierTest;

TEST_F(DiskTierTest, WhatWasWrittenIsRead) {
  start();
  std::vector<DiskRecord> records;
  std::map<std::string, std::string> expected;
  for (const size_t size : {0, 1, 100, 900, 4055, 4056, 4057, 8192, 70'000, 300'000}) {
    const std::string key = fmt::format("file:{}", size);
    expected[key] = std::string(size, static_cast<char>('a' + size % 26));
    records.push_back(record(key, expected[key]));
  }
  ASSERT_TRUE(write(records).has_value());
  for (const auto& [key, value] : expected) EXPECT_EQ(read(key), value) << key;
  EXPECT_EQ(read("absent"), std::nullopt);
}

// Past the seam that the other tests inject faults at: by io_uring where the kernel has it.
TEST_F(DiskTierTest, WhatWasWrittenIsReadByTheKernelsOwnWay) {
  tier_ = DiskTier::open(config(), {}).value();
  std::vector<DiskRecord> records;
  for (int i = 0; i < 200; ++i)
    records.push_back(record(fmt::format("k{}", i), std::string(static_cast<size_t>(i * 20), 'v')));
  ASSERT_TRUE(write(records).has_value());
  for (int round = 0; round < 3; ++round) {
    for (const DiskRecord& record : records) EXPECT_EQ(read(record.key), record.value.str()) << record.key;
  }
  std::vector<std::jthread> readers;
  for (int t = 0; t < 20; ++t) {  // more than there are rings
    readers.emplace_back([&] {
      for (const DiskRecord& record : records) EXPECT_EQ(read(record.key), record.value.str());
    });
  }
  readers.clear();
  EXPECT_EQ(tier_->count(DiskCounter::misses), 0u);
}

// What is cached may be anybody's: nobody but the owner reads it, whatever the process's umask.
TEST_F(DiskTierTest, FilesAreTheOwnersAlone) {
  const mode_t before = ::umask(0);
  start();
  ASSERT_TRUE(write({record("a", "1"), record("b", "2")}).has_value());
  erase("a");
  restart();
  ASSERT_TRUE(write({record("c", "3")}).has_value());
  tier_->close(Deadline::in_ms(5'000));
  ::umask(before);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
    struct stat info = {};
    ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, S_ISDIR(info.st_mode) ? 0700U : 0600U) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 4);
}

TEST_F(DiskTierTest, AnOrderlyRestartKeepsEverythingAndTheIncarnation) {
  start();
  ASSERT_TRUE(write({record("a", "1"), record("b", "2")}).has_value());
  const Hash128 incarnation = tier_->owner().incarnation;
  restart();
  EXPECT_TRUE(tier_->was_clean());
  EXPECT_EQ(tier_->owner().incarnation, incarnation);
  EXPECT_EQ(read("a"), "1");
  EXPECT_EQ(read("b"), "2");
}

TEST_F(DiskTierTest, HotObjectsOfAnEvictedBucketAreHandedBack) {
  DiskTierConfig with = config();
  with.capacity_bytes = 4 << 20;
  std::vector<DiskRecord> kept;
  ASSERT_TRUE(start(with, {.before_keeping = [] { return uint64_t{7}; },
                           .keep =
                               [&](DiskRecord r, uint64_t ticket) {
                                 EXPECT_EQ(ticket, 7u);
                                 kept.push_back(std::move(r));
                               }})
                  .has_value());
  ASSERT_TRUE(write({record("hot", "value"), record("cold", std::string(900'000, 'x'))}).has_value());
  EXPECT_TRUE(read("hot").has_value());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(write({record(fmt::format("k{}", i), std::string(900'000, 'x'))}).has_value());
  }
  tier_->close(Deadline::in_ms(5'000));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].key, "hot");
  EXPECT_EQ(kept[0].value.view(), "value");
  EXPECT_EQ(tier_->count(DiskCounter::records_reinserted), 1u);
}

TEST_F(DiskTierTest, WhatCouldNotBeReadIsWrittenAnew) {
  DiskTierConfig with = config();
  with.direct_io = false;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("k", "v")}).has_value());
  files_.add(Fault("pread").at_most(10));
  EXPECT_EQ(read("k"), std::nullopt);
  ASSERT_TRUE(write({record("k", "v")}).has_value());
  EXPECT_EQ(read("k"), "v");
}

TEST_F(DiskTierTest, SmallBucketsDoNotPileUp) {
  DiskTierConfig with = config();
  with.most_buckets = 4;
  ASSERT_TRUE(start(with).has_value());
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(write({record(fmt::format("k{}", i), "x")}).has_value());
  const Deadline soon = Deadline::in_ms(20'000);
  while (tier_->buckets() > with.most_buckets && !soon.expired()) std::this_thread::yield();
  EXPECT_LE(tier_->buckets(), with.most_buckets);
  EXPECT_EQ(read("k11"), "x");
}

TEST_F(DiskTierTest, ARecordThatIsRefusedAtTheEndIsNotServed) {
  start();
  const std::vector<DiskRecord> records = {record("replaced", "old"), record("kept", "v")};
  ASSERT_TRUE(tier_->write(records, [](const DiskRecord& r) { return r.key != "replaced"; }).has_value());
  EXPECT_EQ(read("replaced"), std::nullopt);
  EXPECT_EQ(read("kept"), "v");
}

TEST_F(CaseC14, ExpiredObjectsMissAfterARestartToo) {
  DiskTierConfig with = config();
  with.clock = &clock_;
  ASSERT_TRUE(start(with).has_value());
  DiskRecord short_lived = record("k", "v");
  short_lived.expires_at_ms = clock_.wall_ns() / 1'000'000 + 1'000;
  ASSERT_TRUE(write({short_lived}).has_value());
  EXPECT_EQ(read("k"), "v");
  tier_->close(Deadline::in_ms(5'000));
  tier_.reset();
  clock_.advance_ms(1'001);
  ASSERT_TRUE(start(with).has_value());
  EXPECT_EQ(read("k"), std::nullopt);
}

TEST_F(CaseD20, EvictionKeepsTheBudgetAndTheNewest) {
  DiskTierConfig with = config();
  with.capacity_bytes = 4 << 20;
  ASSERT_TRUE(start(with).has_value());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(write({record(fmt::format("k{}", i), std::string(900'000, 'x'))}).has_value()) << i;
    EXPECT_LE(tier_->used_bytes(), with.capacity_bytes);
  }
  EXPECT_EQ(read("k0"), std::nullopt);
  EXPECT_TRUE(read("k19").has_value());
  EXPECT_GT(tier_->count(DiskCounter::buckets_evicted), 0u);
}

// The tests below damage the directory between two lives or fail the calls of one.

TEST_F(CaseD05, AFlippedByteAnywhereIsNeverServed) {
  start();
  std::map<std::string, std::string> expected;
  std::vector<DiskRecord> records;
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    std::string value(random() % 3000, '\0');
    for (char& c : value) c = static_cast<char>(random());
    const std::string key = fmt::format("k{}", i);
    expected[key] = value;
    records.push_back(record(key, value));
  }
  ASSERT_TRUE(write(records).has_value());
  ASSERT_TRUE(erase("k3"));
  tier_->close(Deadline::in_ms(5'000));
  tier_.reset();
  for (const char* ending : {".data", ".meta", "TOMBSTONES", "OWNER"}) {
    const std::string path = only_file(ending);
    std::ifstream in(path, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), {});
    for (int round = 0; round < 12; ++round) {
      const std::string aside = directory_ + "_aside";
      std::filesystem::copy(directory_, aside);
      std::string bad = good;
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
      std::ofstream(path, std::ios::binary).write(bad.data(), static_cast<std::streamsize>(bad.size()));
      if (start(config()).has_value()) {
        for (const auto& [key, value] : expected) {
          const auto got = read(key);
          EXPECT_TRUE(!got || (*got == value && key != "k3")) << ending << " " << key;
        }
      }
      tier_.reset();
      std::filesystem::remove_all(directory_);
      std::filesystem::rename(aside, directory_);
    }
  }
}

TEST_F(DiskTierTest, TruncatedAndSwappedFilesAreSetAsideNotDeleted) {
  start();
  ASSERT_TRUE(write({record("a", std::string(5'000, 'a'))}).has_value());
  tier_->close(Deadline::in_ms(5'000));
  tier_.reset();
  std::filesystem::resize_file(only_file(".data"), 4096);
  start();
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_EQ(tier_->count(DiskCounter::quarantined_buckets), 1u);
  EXPECT_FALSE(only_file(".data.bad").empty());
}

TEST_F(CaseB08, OrphansOfAnInterruptedWriteAreRemoved) {
  start();
  files_.add(Fault("renameat2", ENOSPC).on(".meta"));
  files_.add(Fault("unlinkat", EPERM).times(3));
  EXPECT_FALSE(write({record("a", "1")}).has_value());
  EXPECT_FALSE(only_file(".data").empty());
  restart();
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_TRUE(only_file(".data").empty());
  EXPECT_GT(tier_->count(DiskCounter::orphans_removed), 0u);
}

TEST_F(DiskTierTest, ATransientErrorInRecoveryDeletesNothing) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  tier_->close(Deadline::in_ms(5'000));
  tier_.reset();
  files_.add(Fault("openat", EMFILE).on(".meta"));
  start();
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_EQ(tier_->count(DiskCounter::recovery_skipped), 1u);
  restart();
  EXPECT_EQ(read("a"), "1");
}

TEST_F(DiskTierTest, ErrorsOfOneFileOrOfThisProcessNeverFence) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  for (const int error : {ENOSPC, EDQUOT, EMFILE, ENOMEM, EFBIG}) {
    for (const char* call : {"pwrite", "fdatasync", "fsync", "renameat2", "openat"}) {
      files_.add(Fault(call, error));
      EXPECT_FALSE(write({record("b", "2")}).has_value()) << call << " " << error;
      files_.clear();
      EXPECT_EQ(read("b"), std::nullopt);
    }
  }
  for (const int error : {EINTR, EMFILE, ENOMEM}) {
    files_.add(Fault("pread", error));
    EXPECT_EQ(read("a"), error == EINTR ? std::optional<std::string>("1") : std::nullopt);
    files_.clear();
  }
  EXPECT_FALSE(tier_->fence().fenced());
  EXPECT_EQ(read("a"), "1");
  ASSERT_TRUE(write({record("b", "2")}).has_value());
  EXPECT_EQ(read("b"), "2");
}

// What a file system tells late: at the close of a file, at the sync of its directory, at a removal.
TEST_F(DiskTierTest, ErrorsOfCloseOfTheDirectoryAndOfRemovalsAreReported) {
  start();
  for (const auto& [call, op] : {std::pair("close", DiskOp::close), std::pair("fsync", DiskOp::fsync)}) {
    const uint64_t before = tier_->errors(op);
    files_.add(Fault(call, EIO));
    EXPECT_FALSE(write({record("a", "1")}).has_value()) << call;
    EXPECT_EQ(tier_->errors(op), before + 1) << call;
    ASSERT_TRUE(tier_->fence().wait_idle(Deadline::in_ms(20'000)));
    files_.clear();
  }
  EXPECT_GE(tier_->fence().stats().checks, 2U);
  EXPECT_FALSE(tier_->fence().fenced());
  files_.add(Fault("pwrite", ENOSPC));
  files_.add(Fault("unlinkat", EROFS));  // of what was given up
  EXPECT_FALSE(write({record("a", "1")}).has_value());
  EXPECT_TRUE(tier_->fence().fenced());
  EXPECT_EQ(tier_->fence().reason().op, DiskOp::unlink);
}

TEST_F(CaseB01, ShortReadsAndWritesAreLogicalErrors) {
  DiskTierConfig with = config();
  with.direct_io = false;  // direct I/O refuses to read ten bytes
  ASSERT_TRUE(start(with).has_value());
  files_.add(Fault("pwrite").at_most(100).times(-1));
  EXPECT_FALSE(write({record("a", std::string(9'000, 'a'))}).has_value());
  files_.clear();
  ASSERT_TRUE(write({record("b", "2")}).has_value());
  files_.add(Fault("pread").at_most(10));
  EXPECT_EQ(read("b"), std::nullopt);
  EXPECT_EQ(tier_->count(DiskCounter::short_reads), 1u);
  EXPECT_FALSE(tier_->fence().fenced());
}

TEST_F(CaseD13, AVanishedFileIsAMiss) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  std::filesystem::remove(only_file(".data"));
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_EQ(tier_->count(DiskCounter::vanished_files), 1u);
  EXPECT_FALSE(tier_->fence().fenced());
}

// The disk says that it wrote, and did not: reads turn bad, the probe finds out.
TEST_F(DiskTierTest, ADiskThatDropsWritesIsFoundOutByTheProbe) {
  DiskTierConfig with = config();
  with.direct_io = false;
  ASSERT_TRUE(start(with).has_value());
  files_.add(Fault("pwrite").on(".data").drop().times(-1));
  files_.add(Fault("pwrite").on("PROBE").drop().times(-1));
  std::vector<DiskRecord> records;
  for (int i = 0; i < 20; ++i) records.push_back(record(fmt::format("k{}", i), std::string(3'000, 'v')));
  ASSERT_TRUE(write(records).has_value());
  for (const DiskRecord& lost : records) EXPECT_EQ(read(lost.key), std::nullopt);
  const Deadline soon = Deadline::in_ms(20'000);
  while (!tier_->fence().fenced() && !soon.expired()) std::this_thread::yield();
  EXPECT_TRUE(tier_->fence().reason().reason.starts_with("probe"));
}

// Bad bytes in one bucket of a disk that works: the probe says so, nothing is fenced.
TEST_F(DiskTierTest, BadReadsOfADiskThatWorksDoNotFence) {
  start();
  std::vector<DiskRecord> records;
  for (int i = 0; i < 20; ++i) records.push_back(record(fmt::format("k{}", i), std::string(3'000, 'v')));
  ASSERT_TRUE(write(records).has_value());
  std::filesystem::resize_file(only_file(".data"), 0);
  for (const DiskRecord& lost : records) EXPECT_EQ(read(lost.key), std::nullopt);
  const Deadline soon = Deadline::in_ms(20'000);
  while (!logged("action=disk_probe_passed") && !soon.expired()) std::this_thread::yield();
  EXPECT_TRUE(logged("action=disk_probe_passed"));
  EXPECT_FALSE(tier_->fence().fenced());
}

// As ext4 after its shutdown: every call fails with EIO, and fstat() finds nothing wrong.
TEST_F(DiskTierTest, ADirectoryInWhichNoFileCanBeWrittenIsFoundOutByTheProbe) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  files_.add(Fault("pwrite", EIO).times(-1));
  EXPECT_FALSE(write({record("b", "2")}).has_value());
  const Deadline soon = Deadline::in_ms(20'000);
  while (!tier_->fence().fenced() && !soon.expired()) std::this_thread::yield();
  EXPECT_EQ(tier_->fence().reason().reason, "probe: no file can be written");
  EXPECT_EQ(tier_->fence().reason().sys_errno, EIO);
}

// A bad place on a disk that works: the probe finds room for its file elsewhere.
TEST_F(DiskTierTest, AWriteThatFailsOnADiskThatWorksDoesNotFence) {
  start();
  files_.add(Fault("pwrite", EIO).times(3));  // the bucket's, and two of the probe's
  EXPECT_FALSE(write({record("a", "1")}).has_value());
  const Deadline soon = Deadline::in_ms(20'000);
  while (!logged("action=disk_probe_passed") && !soon.expired()) std::this_thread::yield();
  EXPECT_TRUE(logged("action=disk_probe_passed"));
  EXPECT_FALSE(tier_->fence().fenced());
  ASSERT_TRUE(write({record("b", "2")}).has_value());
  EXPECT_EQ(read("b"), "2");
}

TEST_F(DiskTierTest, ReadOnlyFilesystemFencesAndAfterItNoCallIsMade) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  EXPECT_EQ(read("a"), "1");
  files_.add(Fault("pwrite", EROFS));
  EXPECT_FALSE(write({record("b", "2")}).has_value());
  EXPECT_TRUE(tier_->fence().fenced());
  EXPECT_TRUE(logged("action=disk_fenced"));
  tier_->release();
  files_.reset_calls();
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_FALSE(write({record("c", "3")}).has_value());
  EXPECT_EQ(files_.calls_except("close"), 0);
}

// Each rule of the fence that the tier applies, taken out.
TEST_F(DiskTierTest, WithoutTheRuleAFencedDirectoryIsStillRead) {
  start();
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  tier_->fence().fence("operator", DiskOp::write, EIO);
  files_.reset_calls();
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_EQ(files_.all_calls(), 0);
  const FenceRuleSwitch off(FenceRule::kReadsStop);
  EXPECT_EQ(read("a"), "1");
  EXPECT_GT(files_.all_calls(), 0);
}

TEST_F(DiskTierTest, WithoutTheRuleAHungDirectoryStaysInUse) {
  DiskTierConfig with = config();
  with.hang_timeout_ms = 1;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  const FenceRuleSwitch off(FenceRule::kSuspendOnHang);
  const auto hung = PausePoints::arm("hung_disk");
  files_.add(Fault("pread").run([] { PausePoints::reach("hung_disk"); }));
  EXPECT_FALSE(tier_->read("a", hash64(std::string_view("a")), Deadline::in_ms(30)).has_value());
  ASSERT_TRUE(hung->wait_for_arrival());
  EXPECT_FALSE(tier_->watch());
  EXPECT_EQ(tier_->state(), DiskState::serving);
  hung->release();
}

TEST_F(CaseB23, DirectIoThatIsRefusedFallsBackOnceWithoutAFence) {
  start();
  files_.add(Fault("openat", EINVAL).on(".data"));
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  EXPECT_EQ(read("a"), "1");
  EXPECT_EQ(tier_->count(DiskCounter::direct_fallbacks), 1u);
  EXPECT_FALSE(tier_->fence().fenced());
}

TEST_F(CaseD07, AHungReadLeavesItsCallerAndSuspendsTheDirectory) {
  DiskTierConfig with = config();
  with.hang_timeout_ms = 1;
  ASSERT_TRUE(start(with).has_value());
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  const auto hung = PausePoints::arm("hung_disk");
  files_.add(Fault("pread").run([] { PausePoints::reach("hung_disk"); }));
  EXPECT_FALSE(tier_->read("a", hash64(std::string_view("a")), Deadline::in_ms(30)).has_value());
  ASSERT_TRUE(hung->wait_for_arrival());
  const Deadline soon = Deadline::in_ms(20'000);
  while (!tier_->watch() && !soon.expired()) {
  }
  EXPECT_EQ(tier_->state(), DiskState::suspended);
  EXPECT_EQ(read("a"), std::nullopt);
  EXPECT_EQ(tier_->count(DiskCounter::reads_skipped), 1u);
  hung->release();
  while (tier_->watch() && !soon.expired()) {
  }
  EXPECT_EQ(read("a"), "1");
}

TEST_F(CaseD14, BadDirectoriesAreRefusedWithAReason) {
  const auto reason = [&](const std::string& path) {
    DiskTierConfig with = config();
    with.directory = path;
    const auto opened = start(with);
    return opened ? std::string() : opened.error().text();
  };
  EXPECT_NE(reason(directory_ + "/missing").find("opening the directory"), std::string::npos);
  std::ofstream(directory_ + "/file") << "x";
  EXPECT_NE(reason(directory_ + "/file").find("opening the directory"), std::string::npos);
  EXPECT_NE(reason(directory_).find("not RAGFS's"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/file"));
}

TEST_F(CaseE22, TwoOwnersOfOneDirectoryAreKeptApart) {
  start();
  const auto second = DiskTier::open(config(), {}, files_);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().text().find("in use by another process"), std::string::npos);
}

TEST_F(DiskTierTest, ALifeThatWasNotClosedBeginsAnotherIncarnation) {
  start();
  const Hash128 incarnation = tier_->owner().incarnation;
  ASSERT_TRUE(write({record("a", "1")}).has_value());
  const std::string aside = directory_ + "_crash";
  std::filesystem::copy(directory_, aside);  // as kill -9 leaves it
  tier_.reset();
  std::filesystem::remove_all(directory_);
  std::filesystem::rename(aside, directory_);
  start();
  EXPECT_FALSE(tier_->owner().incarnation == incarnation);
  EXPECT_EQ(read("a"), "1");
}

}  // namespace
}  // namespace ragfs
