// The second tier on file systems other than XFS, on a full one, on a device that hangs, and on directories that are
// bad from the start.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/faults/disk_faults_fixture.h"

namespace ragfs::faults {
namespace {

// The errno of fstat() on a descriptor of `directory`, 0 = none.
int fstat_says(const std::string& directory) {
  struct stat unused{};
  return ::stat(directory.c_str(), &unused) == 0 ? 0 : errno;
}

class Ext4Faults : public DiskFaults {
 protected:
  // Puts until the directory is fenced; the milliseconds that took, -1 when it was not.
  double ms_until_fenced(const std::function<void()>& harm) {
    harm();
    const int64_t began_ns = Clock::system().monotonic_ns();
    std::atomic<bool> stop{false};
    std::jthread writer([&] {
      for (int i = 0; !stop.load(); ++i) put(fmt::format("later{}", i));
    });
    const bool fenced = wait_until([&] { return tier().fence().fenced(); });
    stop = true;
    writer.join();
    const FenceReason why = tier().fence().reason();
    GTEST_LOG_(INFO) << fmt::format("fstat: {}; {} ms until fenced; reason: {}, {} with {}",
                                    errno_name(fstat_says(disk_->directory())), ms_since(began_ns), why.reason,
                                    disk_op_name(why.op), errno_name(why.sys_errno));
    return fenced ? ms_since(began_ns) : -1;
  }
  void memory_serves_on() {
    ASSERT_TRUE(wait_until([&] { return logged("action=release_offload_queue"); }));
    ASSERT_TRUE(put("fresh"));
    const auto found = memory_->get("fresh", hash64("fresh"));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->view(), value_of("fresh"));
    EXPECT_EQ(hits("k"), 0);
  }
};

// fstat() finds nothing wrong with it: it is the probe that finds it out.
TEST_F(Ext4Faults, AShutDownFileSystemIsFencedByTheProbe) {
  NEEDS_DISK({.file_system = "ext4"});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GT(hits("k"), 600);
  EXPECT_GE(ms_until_fenced([&] { ASSERT_TRUE(disk_->shut_down()); }), 0);
  EXPECT_EQ(fstat_says(disk_->directory()), 0);
  EXPECT_TRUE(tier().fence().reason().reason.starts_with("probe")) << tier().fence().reason().reason;
  memory_serves_on();
}

TEST_F(Ext4Faults, ADeadDeviceIsFencedByTheWritePathAlone) {
  NEEDS_DISK({.file_system = "ext4", .can_die = true});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GE(ms_until_fenced([&] { disk_->kill_device(); }), 0);
  EXPECT_TRUE(is_write_kind(tier().fence().reason().op));
  memory_serves_on();
}

TEST_F(Ext4Faults, AFileSystemThatTurnsReadOnlyIsFencedAtTheNextWrite) {
  NEEDS_DISK({.file_system = "ext4", .mount_options = "-o errors=remount-ro"});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  if (!disk_->note_ext4_error()) GTEST_SKIP() << "this kernel lets nobody note an error";
  EXPECT_GE(ms_until_fenced([] {}), 0);
  EXPECT_EQ(tier().fence().reason().sys_errno, EROFS);
  memory_serves_on();
}

// Somebody else fills the file system up: buckets are evicted, writes given up; never a fence, never wrong bytes.
TEST_F(DiskFaults, AFullFileSystemIsNoReasonForAFence) {
  NEEDS_DISK({.file_system = "tmpfs", .size_bytes = 24 << 20});
  SecondTierConfig with = config();
  with.disks[0].min_free_bytes = 0;
  start(with);
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GT(hits("k"), 600);
  shell(fmt::format("dd if=/dev/zero of={}/others bs=1M", disk_->mount_point()));
  put_many("later", 3'000);
  tier_->flush(Deadline::in_ms(20'000));
  EXPECT_GT(tier().count(DiskCounter::buckets_evicted) + tier().count(DiskCounter::writes_without_room), 0U);
  (void)hits("k");  // whatever is there is right
  (void)hits("later", 3'000);
  EXPECT_FALSE(tier().fence().fenced());
  std::filesystem::remove(disk_->mount_point() + "/others");
  EXPECT_TRUE(wait_until([&] {
    put_many("after", 600);
    tier_->flush(Deadline::in_ms(20'000));
    return hits("after", 600) > 200;
  }));
  EXPECT_FALSE(tier().fence().fenced());
}

// The device answers nothing for a while: nobody waits for it, a bounded number of threads is stuck in it.
TEST_F(DiskFaults, ADeviceThatHangsIsSuspendedUntilItGoesOn) {
  NEEDS_DISK({.can_hang = true});
  start(config(), PosixFiles::system());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GT(hits("k"), 600);
  ASSERT_TRUE(disk_->hang());
  std::atomic<int64_t> longest_ns{0};
  {
    std::vector<std::jthread> readers;
    for (int t = 0; t < 40; ++t) {
      readers.emplace_back([&, t] {
        for (int i = t; i < 1'000; i += 40) {
          const int64_t start_ns = Clock::system().monotonic_ns();
          (void)get_from_disk(fmt::format("k{}", i), 100);
          const int64_t took_ns = Clock::system().monotonic_ns() - start_ns;
          if (took_ns > longest_ns.load()) longest_ns = took_ns;
        }
      });
    }
  }
  EXPECT_LT(longest_ns.load(), int64_t{1'500} * 1'000'000) << "the deadline was 100 ms";
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::suspended; }));
  put_many("later", 300);
  ASSERT_TRUE(memory_->get("later299", hash64("later299")));
  ASSERT_TRUE(disk_->go_on());
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::serving; }));
  EXPECT_TRUE(wait_until([&] { return hits("k", 600) > 400; }));
  EXPECT_FALSE(tier().fence().fenced());
}

// The device acknowledges writes and keeps none: every call succeeds, no wrong bytes are served, the probe finds it
// out.
TEST_F(DiskFaults, ADeviceThatDropsWritesIsFoundOutByTheProbe) {
  NEEDS_DISK({.can_drop = true});
  start(config(), PosixFiles::system());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  EXPECT_GT(hits("k"), 600);
  disk_->drop_writes();
  put_many("later");
  tier_->flush(Deadline::in_ms(20'000));
  EXPECT_TRUE(wait_until([&] {
    (void)hits("later", 700);
    return tier().fence().fenced();
  }));
  EXPECT_TRUE(tier().fence().reason().reason.starts_with("probe")) << tier().fence().reason().reason;
  ASSERT_TRUE(put("fresh"));
  EXPECT_TRUE(memory_->get("fresh", hash64("fresh")));
}

// Each kind of directory that cannot be used: the process starts, serves from memory, and says why.
TEST_F(DiskFaults, AProcessStartsOnEveryKindOfBadDirectory) {
  NEEDS_DISK({});
  const std::string good = disk_->directory();
  const auto serves_without = [&](const std::string& directory, const std::string& why) {
    SecondTierConfig with = config();
    with.disks[0].directory = directory;
    start(with);
    EXPECT_EQ(tier_->lanes()[0]->disk(), nullptr) << why;
    put_many("k", 300);
    const auto found = memory_->get("k299", hash64("k299"));
    EXPECT_TRUE(found && found->view() == value_of("k299"));
    EXPECT_EQ(get_from_disk("k0"), 0);
    const auto warnings = tier_->warnings();
    EXPECT_EQ(warnings.size(), 1U) << why;
    if (!warnings.empty()) {
      EXPECT_NE(warnings[0].find(why), std::string::npos) << warnings[0];
    }
    EXPECT_TRUE(logged("action=disk_not_used"));
    EXPECT_EQ(tier_->incarnation(), "");
    stop();
  };
  serves_without(good + "/missing", "opening the directory");
  std::ofstream(good + "/file") << "x";
  serves_without(good + "/file", "opening the directory");
  serves_without(good, "not RAGFS's");
  std::filesystem::remove(good + "/file");
  {
    const auto owner = DiskTier::open({.directory = good, .capacity_bytes = 64 << 20, .bucket_bytes = 1 << 20}, {});
    ASSERT_TRUE(owner);
    serves_without(good, "in use");
  }
  ASSERT_TRUE(disk_->unmount());
  ASSERT_TRUE(disk_->mount("-o ro"));
  serves_without(good, "EROFS");
  ASSERT_TRUE(disk_->unmount());
  ASSERT_TRUE(disk_->mount());
  ASSERT_TRUE(disk_->shut_down());
  serves_without(good, "EIO");
}

// E1: what memory answers does not get slower while the disk dies.
TEST_F(DiskFaults, MemoryKeepsItsPaceWhileTheDiskDies) {
  NEEDS_DISK({});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  ASSERT_TRUE(put("hot"));
  const auto p99_us = [&] {
    std::vector<int64_t> took_ns;
    for (int i = 0; i < 20'000; ++i) {
      if (i % 20 == 0) put(fmt::format("flow{}", i));
      const int64_t start_ns = Clock::system().monotonic_ns();
      (void)memory_->get("hot", hash64("hot"));
      took_ns.push_back(Clock::system().monotonic_ns() - start_ns);
    }
    std::ranges::nth_element(took_ns, took_ns.begin() + 19'800);
    return static_cast<double>(took_ns[19'800]) / 1e3;
  };
  (void)p99_us();
  const double well_us = p99_us();
  std::jthread harm([&] { disk_->shut_down(); });
  const double dying_us = p99_us();
  harm.join();
  EXPECT_TRUE(wait_until([&] {
    put_many("more", 300);
    return tier().fence().fenced();
  }));
  const double fenced_us = p99_us();
  GTEST_LOG_(INFO) << fmt::format("p99 of a hit in memory: {:.2f} us, {:.2f} us while the disk dies, {:.2f} us after",
                                  well_us, dying_us, fenced_us);
  EXPECT_LT(dying_us, 10 * well_us + 100);
  EXPECT_LT(fenced_us, 10 * well_us + 100);
}

}  // namespace
}  // namespace ragfs::faults
