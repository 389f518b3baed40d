// The disk tier and its fence on real file systems whose disk dies, hangs, fills up or is bad in places.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ragfs/base/faulty_files.h"
#include "ragfs/store/disk/fence_rules.h"
#include "ragfs/store/node/second_tier.h"
#include "tests/faults/fault_disk.h"

namespace ragfs::faults {
namespace {

constexpr size_t kValueBytes = 4000;

class DiskFaults : public testing::Test {
 protected:
  ~DiskFaults() override { stop(); }

  // False: the machine cannot, and the test is skipped.
  bool make_disk(const FaultDisk::Options& options) {
    auto made = FaultDisk::make(options);
    if (!made) {
      skip_reason_ = made.error().text();
      return false;
    }
    disk_ = std::move(*made);
    return true;
  }
  SecondTierConfig config() const {
    return {.disks = {{.directory = disk_->directory(),
                       .capacity_bytes = 64 << 20,
                       .bucket_bytes = 1 << 20,
                       .min_free_bytes = 1 << 20,
                       .hang_timeout_ms = 200}},
            .admit_all = true,
            .promote_hits = 0,
            .flush_ms = 1};
  }
  void start(SecondTierConfig with) { start(std::move(with), files_); }
  void start(SecondTierConfig with, PosixFiles& files) {
    const auto log = [this](std::string_view line) {
      const MutexLock lock(log_mutex_);
      if (line.starts_with("action=disk_fenced")) fenced_at_ns_.store(Clock::system().monotonic_ns());
      lines_.emplace_back(line);
    };
    tier_ = SecondTier::open(std::move(with), log, files).value();
    memory_ =
        MemoryTier::create({.capacity_bytes = 8 << 20, .max_objects = 256, .shards = 1, .sink = tier_.get()}).value();
    tier_->attach(*memory_);
  }
  void stop() {
    if (tier_ == nullptr) return;
    tier_->close(Deadline::in_ms(10'000));
    memory_.reset();
    tier_.reset();
  }
  static std::string value_of(const std::string& key) {
    std::string value = key + ":";
    value.resize(kValueBytes, 'v');
    return value;
  }
  bool put(const std::string& key) {
    const uint64_t hash = hash64(key);
    const std::string value = value_of(key);
    const SecondTier::Change change(*tier_, hash, Deadline::in_ms(1'000));
    return memory_->put({.key = key, .hash = hash, .head = value}).has_value();
  }
  // Puts a thousand objects of this name, of which memory keeps a quarter.
  void put_many(const std::string& name, int count = 1'000) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(put(fmt::format("{}{}", name, i)));
  }
  // 1 = hit, 0 = miss; wrong bytes fail the test.
  int get_from_disk(const std::string& key, int64_t timeout_ms = 5'000) {
    const auto found = tier_->get(key, hash64(key), Deadline::in_ms(timeout_ms));
    EXPECT_TRUE(!found || found->view() == value_of(key)) << key;
    return found ? 1 : 0;
  }
  int hits(const std::string& name, int count = 1'000) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += get_from_disk(fmt::format("{}{}", name, i));
    return sum;
  }
  DiskTier& tier() { return *tier_->lanes()[0]->disk(); }
  bool wait_until(const std::function<bool()>& condition, int64_t timeout_ms = 20'000) {
    const Deadline until = Deadline::in_ms(timeout_ms);
    while (!condition()) {
      if (until.expired()) return false;
      std::this_thread::yield();
    }
    return true;
  }
  bool logged(std::string_view part) {
    const MutexLock lock(log_mutex_);
    return std::any_of(lines_.begin(), lines_.end(), [&](const auto& l) { return l.find(part) != l.npos; });
  }
  // Notes when the first of these calls failed.
  double ms_since(int64_t from_ns) const { return static_cast<double>(fenced_at_ns_.load() - from_ns) / 1e6; }

  std::unique_ptr<FaultDisk> disk_;
  std::string skip_reason_;
  FaultyFiles files_;
  std::unique_ptr<SecondTier> tier_;
  std::unique_ptr<MemoryTier> memory_;
  std::atomic<int64_t> fenced_at_ns_{0};
  Mutex log_mutex_;
  std::vector<std::string> lines_ RAGFS_GUARDED_BY(log_mutex_);
};

using CaseD38E19 = DiskFaults;
using CaseD07 = DiskFaults;
using CaseD14 = DiskFaults;

#define NEEDS_DISK(...) \
  if (!make_disk(__VA_ARGS__)) GTEST_SKIP() << skip_reason_

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
  EXPECT_LT(ms_since(began_ns), 50);
  GTEST_LOG_(INFO) << fmt::format("fenced {:.1f} ms after the first write, by {}", ms_since(began_ns),
                                  disk_op_name(tier().fence().reason().op));
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

// E3: exactly the objects of the bad bucket miss; nothing is fenced, no syncfs storm.
TEST_F(DiskFaults, OneBadBucketNeverFences) {
  NEEDS_DISK({});
  start(config());
  put_many("k", 1'500);
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  const int all = hits("k", 1'200);
  stop();
  std::string bad_file;
  for (const auto& entry : std::filesystem::directory_iterator(disk_->directory())) {
    if (entry.path().extension() == ".data" && entry.file_size() > 500'000) bad_file = entry.path();
  }
  ASSERT_FALSE(bad_file.empty());
  shell("sync -f " + disk_->directory());
  const auto extents = disk_->extents_of(bad_file);
  ASSERT_FALSE(extents.empty());
  if (!disk_->remount_with_bad(extents)) GTEST_SKIP() << "no nbdkit with the ddrescue filter";
  start(config());
  ASSERT_NE(tier_->lanes()[0]->disk(), nullptr) << tier_->lanes()[0]->reason();
  files_.reset_calls();
  int worst = all;
  for (int round = 0; round < 10; ++round) worst = std::min(worst, hits("k", 1'200));
  const uint64_t failed = tier().count(DiskCounter::read_errors);
  EXPECT_GT(failed, 500u);
  EXPECT_GT(worst, all / 2);
  EXPECT_LT(worst, all);
  EXPECT_FALSE(tier().fence().fenced());
  EXPECT_EQ(files_.calls("syncfs"), 0);
  EXPECT_TRUE(logged("action=disk_error_not_fenced"));
  GTEST_LOG_(INFO) << fmt::format("{} of {} objects hit, {} reads failed, {} checks", worst, all, failed,
                                  tier().fence().stats().checks);
}

// Somebody else fills the disk; then frees it.
TEST_F(CaseD38E19, AFullDiskShedsAndHealsByItself) {
  NEEDS_DISK({.file_system = "ext4", .size_bytes = uint64_t{64} << 20});
  SecondTierConfig with = config();
  with.disks[0].min_free_bytes = 0;
  with.disks[0].capacity_bytes = uint64_t{1} << 30;
  start(with);
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  shell(fmt::format("dd if=/dev/zero of={}/foreign bs=1M", disk_->mount_point()));
  put_many("l", 4'000);
  tier_->flush(Deadline::in_ms(20'000));
  EXPECT_FALSE(tier().fence().fenced());
  EXPECT_GT(tier().count(DiskCounter::writes_without_room) + tier().count(DiskCounter::write_failures) +
                tier().count(DiskCounter::buckets_evicted),
            0u);
  (void)hits("k");  // right bytes or none
  std::filesystem::remove(disk_->mount_point() + "/foreign");
  EXPECT_TRUE(wait_until(
      [&] {
        put_many("m", 600);
        tier_->flush(Deadline::in_ms(20'000));
        return hits("m", 300) > 250;
      },
      30'000));
  for (const auto& entry : std::filesystem::directory_iterator(disk_->directory())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

// A frozen file system hangs what writes. Readers and writers of objects go on; thawed, the disk is used again.
TEST_F(CaseD07, AFrozenFileSystemSuspendsTheDirectoryUntilItIsThawed) {
  NEEDS_DISK({});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  ASSERT_TRUE(disk_->freeze());
  put_many("l");
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::suspended; }));
  const int64_t began_ns = Clock::system().monotonic_ns();
  EXPECT_EQ(hits("k", 100), 0);
  put_many("m", 300);
  EXPECT_LT((Clock::system().monotonic_ns() - began_ns) / 1'000'000, 2'000);
  EXPECT_FALSE(tier().fence().fenced());
  ASSERT_TRUE(disk_->thaw());
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::serving; }));
  EXPECT_GT(hits("k", 700), 500);
  EXPECT_TRUE(logged("action=disk_suspended"));
  EXPECT_TRUE(logged("action=disk_resumed"));
}

// A device that answers nothing: readers by io_uring leave at their deadline, and come back when it does.
TEST_F(CaseD07, AHungDeviceHoldsNoReader) {
  NEEDS_DISK({.can_hang = true});
  start(config(), PosixFiles::system());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  ASSERT_GT(hits("k", 700), 500);
  ASSERT_TRUE(disk_->hang());
  const int64_t began_ns = Clock::system().monotonic_ns();
  for (int i = 0; i < 40; ++i) get_from_disk(fmt::format("k{}", i), 20);
  EXPECT_LT((Clock::system().monotonic_ns() - began_ns) / 1'000'000, 5'000);
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::suspended; }));
  EXPECT_GT(tier().count(DiskCounter::read_timeouts), 0u);
  EXPECT_GT(tier().count(DiskCounter::reads_skipped), 0u);
  ASSERT_TRUE(disk_->go_on());
  EXPECT_TRUE(wait_until([&] { return tier().state() == DiskState::serving; }));
  EXPECT_GT(hits("k", 700), 500);
  EXPECT_FALSE(tier().fence().fenced());
}

TEST_F(DiskFaults, ClosingWhileTheFileSystemIsFrozenEndsInTime) {
  NEEDS_DISK({});
  start(config());
  put_many("k");
  ASSERT_TRUE(disk_->freeze());
  put_many("l");
  const int64_t began_ns = Clock::system().monotonic_ns();
  tier_->close(Deadline::in_ms(500));
  EXPECT_LT((Clock::system().monotonic_ns() - began_ns) / 1'000'000, 5'000);
  ASSERT_TRUE(disk_->thaw());
  const std::weak_ptr<DiskLane> left = tier_->lanes()[0];
  memory_.reset();
  tier_.reset();
  EXPECT_TRUE(wait_until([&] { return left.expired(); })) << "what was left behind ends when its call returns";
}

// Error handling of ext4: it makes itself read-only.
TEST_F(DiskFaults, Ext4ThatMadeItselfReadOnlyIsFenced) {
  NEEDS_DISK({.file_system = "ext4", .mount_options = "-o errors=remount-ro"});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  if (shell("echo 1 > /sys/fs/ext4/$(basename $(findmnt -no SOURCE " + disk_->mount_point() + "))/trigger_fs_error") !=
      0) {
    GTEST_SKIP() << "the kernel has no trigger_fs_error";
  }
  put_many("l");
  EXPECT_TRUE(wait_until([&] { return tier().fence().fenced(); }));
  GTEST_LOG_(INFO) << fmt::format("ext4 read-only: fenced by {} with {}", disk_op_name(tier().fence().reason().op),
                                  errno_name(tier().fence().reason().sys_errno));
}

// What a shut-down ext4 answers to fstat decides whether it is ever fenced: measured, not assumed.
TEST_F(DiskFaults, Ext4ThatWasShutDownNeverServesWrongBytes) {
  NEEDS_DISK({.file_system = "ext4"});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  ASSERT_TRUE(disk_->shut_down());
  put_many("l");
  tier_->flush(Deadline::in_ms(20'000));
  (void)hits("k", 700);
  ASSERT_TRUE(tier().fence().wait_idle(Deadline::in_ms(20'000)));
  struct stat found;
  const int answered = ::stat(disk_->directory().c_str(), &found) == 0 ? 0 : errno;
  GTEST_LOG_(INFO) << fmt::format("ext4 shut down: stat answers {}, fenced: {}", errno_name(answered),
                                  tier().fence().fenced());
  EXPECT_EQ(tier().fence().fenced(), tier().fence().reason().sys_errno != 0);
}

TEST_F(CaseD14, EveryBadDirectoryAtStartIsLeftOutWithAReason) {
  NEEDS_DISK({});
  const auto starts_without = [&](const std::string& directory, std::string_view reason) {
    SecondTierConfig with = config();
    with.disks[0].directory = directory;
    start(with);
    EXPECT_EQ(tier_->lanes()[0]->disk(), nullptr) << directory;
    EXPECT_TRUE(logged(reason)) << directory << ": " << tier_->lanes()[0]->reason();
    put_many("k", 300);
    EXPECT_EQ(tier_->warnings().size(), 1u);
    stop();
  };
  starts_without(disk_->mount_point() + "/missing", "ENOENT");
  std::ofstream(disk_->mount_point() + "/file") << "x";
  starts_without(disk_->mount_point() + "/file", "ENOTDIR");
  starts_without(disk_->mount_point(), "files that are not RAGFS's");
  ASSERT_EQ(shell("mount -o remount,ro " + disk_->mount_point()), 0);
  starts_without(disk_->directory(), "EROFS");
  ASSERT_EQ(shell("mount -o remount,rw " + disk_->mount_point()), 0);
  ASSERT_TRUE(disk_->shut_down());
  starts_without(disk_->directory(), "EIO");
}

// The rule that makes the fence work on a dead device, taken out: it stays in use for as long as XFS does not notice.
TEST_F(DiskFaults, WithoutSyncfsADeadDeviceIsNotFencedByItsFirstError) {
  NEEDS_DISK({.can_die = true});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  const FenceRuleSwitch off(FenceRule::kSyncOnWriteKind);
  disk_->kill_device();
  tier().fence().report(DiskOp::fdatasync, EIO, "x.data");
  ASSERT_TRUE(tier().fence().wait_idle(Deadline::in_ms(20'000)));
  EXPECT_FALSE(tier().fence().fenced());
}

TEST_F(DiskFaults, WithSyncfsItIs) {
  NEEDS_DISK({.can_die = true});
  start(config());
  put_many("k");
  ASSERT_TRUE(tier_->flush(Deadline::in_ms(20'000)));
  disk_->kill_device();
  tier().fence().report(DiskOp::fdatasync, EIO, "x.data");
  EXPECT_TRUE(wait_until([&] { return tier().fence().fenced(); }));
}

}  // namespace
}  // namespace ragfs::faults
