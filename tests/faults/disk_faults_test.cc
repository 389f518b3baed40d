// The disk tier and its fence on real file systems whose disk dies, hangs, fills up or is bad in places.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "tests/faults/disk_faults_fixture.h"

namespace ragfs::faults {
namespace {

// E1 of docs/design.md 8.1, rule 6, and after it: memory serves, every key can be overwritten, the dead file system can
// be unmounted while the process goes on.
TEST_F(DiskFaults, XfsThatWasShutDownIsFencedAtTheFirstFailingCall) {
  NEEDS_DISK({});
  start(config());
  put_many("k", 1'200);
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GT(hits("k", 900), 800);
  ASSERT_TRUE(disk_->shut_down());
  const int64_t began_ns = Clock::system().monotonic_ns();
  std::jthread writer([&] { put_many("later"); });
  ASSERT_TRUE(wait_until([&] { return tier().fence().fenced(); }));
  writer.join();
  const double fenced_after_ms = static_cast<double>(tier().fence().stats().fenced_after_ns) / 1e6;
  EXPECT_LT(fenced_after_ms, 50);
  GTEST_LOG_(INFO) << fmt::format("fenced {:.1f} ms after the first failing call, {:.1f} ms after the first put, by {}",
                                  fenced_after_ms, ms_since(began_ns), disk_op_name(tier().fence().reason().op));
  ASSERT_TRUE(wait_until([&] { return logged("action=release_offload_queue") && tier().objects() == 0; }));
  files_.reset_calls();
  put_many("k", 1'200);
  EXPECT_EQ(hits("k", 900), 0);
  int in_memory = 0;
  for (int i = 0; i < 1'200; ++i) {
    const std::string key = fmt::format("k{}", i);
    const auto found = memory_->get(key, hash64(key));
    in_memory += found && found->view() == value_of(key) ? 1 : 0;
  }
  EXPECT_GT(in_memory, 200);
  EXPECT_EQ(files_.all_calls() - files_.calls("close"), 0);
  EXPECT_TRUE(wait_until([&] { return files_.open_fds() == 0; }, 5'000)) << files_.open_fds();
  EXPECT_TRUE(disk_->unmount()) << "the dead file system can be replaced while the process goes on";
}

// E2: the device is gone; nothing reads.
TEST_F(DiskFaults, ADeadDeviceIsFencedByTheWritePathAlone) {
  NEEDS_DISK({.can_die = true});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  const int64_t died_ns = Clock::system().monotonic_ns();
  disk_->kill_device();
  std::atomic<bool> stop{false};
  std::jthread writer([&] {
    for (int i = 0; !stop.load(); ++i) put(fmt::format("later{}", i));
  });
  EXPECT_TRUE(wait_until([&] { return tier().fence().fenced(); }));
  stop = true;
  writer.join();
  EXPECT_LT(ms_since(died_ns), 500);
  const FenceReason why = tier().fence().reason();
  GTEST_LOG_(INFO) << fmt::format("fenced {:.1f} ms after the device died, by {} with {}", ms_since(died_ns),
                                  disk_op_name(why.op), errno_name(why.sys_errno));
  EXPECT_TRUE(is_write_kind(why.op));
}

// E3: part of one bucket's file cannot be read; the file system is well.
TEST_F(DiskFaults, ABadPlaceOnTheDiskIsMissesAndNeverAFence) {
  NEEDS_DISK({});
  SecondTierConfig with = config();
  with.flush_ms = 60'000;  // full buckets
  start(with);
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  const int before = hits("k");
  EXPECT_GT(before, 700);
  stop();
  std::vector<FaultDisk::Range> bad;
  for (const auto& file : std::filesystem::directory_iterator(disk_->directory())) {
    if (file.path().extension() != ".data" || file.file_size() < 512 * 1024) continue;
    bad = disk_->extents_of(file.path());
    break;
  }
  ASSERT_FALSE(bad.empty());
  ASSERT_TRUE(disk_->remount_with_bad(bad));
  start(with);
  ASSERT_TRUE(tier().wait_recovered(Deadline::in_ms(20'000)));
  for (int round = 0; round < 3; ++round) {
    const int now = hits("k");
    EXPECT_GT(now, before / 3);
    EXPECT_LT(now, 1'000);
  }
  EXPECT_GT(tier().count(DiskCounter::read_errors), 0u);
  ASSERT_TRUE(tier().fence().wait_idle(Deadline::in_ms(20'000)));
  EXPECT_GT(tier().fence().stats().checks_passed, 0u);
  EXPECT_EQ(tier().fence().stats().syncfs_calls, 0u);
  EXPECT_FALSE(tier().fence().fenced());
}

// A frozen file system: writers hang, nobody else does; thawed, it is used again.
TEST_F(DiskFaults, AFrozenFileSystemIsSuspendedUntilItIsThawed) {
  NEEDS_DISK({});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  ASSERT_TRUE(disk_->freeze());
  put_many("later", 600);
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::suspended; }));
  const Deadline soon = Deadline::in_ms(2'000);
  EXPECT_EQ(hits("k", 700), 0);
  EXPECT_FALSE(soon.expired()) << "a reader waited for the disk";
  ASSERT_TRUE(disk_->thaw());
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::serving; }));
  EXPECT_GT(hits("k", 700), 600);
  EXPECT_FALSE(tier().fence().fenced());
}

}  // namespace
}  // namespace ragfs::faults
