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
