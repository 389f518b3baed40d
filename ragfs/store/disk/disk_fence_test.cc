// Each rule of the fence as a story that holds with the rule and fails without it.
#include "ragfs/store/disk/disk_fence.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "ragfs/base/faulty_files.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {
namespace {

using Fault = FaultyFiles::Fault;

struct Bench {
  explicit Bench(const std::string& directory = testing::TempDir())
      : fence(files, {.directory = directory, .clock = &clock, .on_fence = [this] { ++fences; }}) {}
  bool settle() { return fence.wait_idle(Deadline::in_ms(20'000)); }
  bool report(DiskOp op, int error) {
    fence.report(op, error, "x.data");
    return settle();
  }
  ManualClock clock;
  FaultyFiles files;
  std::atomic<int> fences{0};
  DiskFence fence;
};

bool fence_now_class() {
  for (const int error : {ENODEV, ENXIO, EROFS, ESHUTDOWN}) {
    Bench bench;
    bench.report(DiskOp::read, error);
    if (!bench.fence.fenced() || bench.fences != 1 || bench.fence.stats().checks != 0) return false;
  }
  return true;
}

bool check_class() {
  for (const int error : {EIO, EUCLEAN, EBADMSG, ENODATA, EREMOTEIO, EILSEQ, ETIMEDOUT, ENOLINK}) {
    Bench bench;
    bench.files.add(Fault("fstat", EIO));
    bench.report(DiskOp::read, error);
    if (!bench.fence.fenced()) return false;
  }
  return true;
}

bool ignore_class() {
  Bench bench;
  bench.files.add(Fault("fstat", EIO).times(-1));
  for (const int error : {0, ENOSPC, EDQUOT, EFBIG, ENOENT, EEXIST, EACCES, EMFILE, ENOMEM, EBADF, EINVAL}) {
    bench.report(DiskOp::write, error);
  }
  return !bench.fence.fenced() && bench.fence.stats().checks == 0;
}

bool verdict_is_fstat() {
  Bench bench;
  bench.files.add(Fault("syncfs", EIO));
  bench.report(DiskOp::write, EIO);
  return !bench.fence.fenced() && bench.fence.stats().checks_passed == 1;
}

// As XFS: fstat sees the death only once syncfs made the log write that shut the file system down.
bool sync_on_write_kind() {
  Bench bench;
  std::atomic<bool> shut{false};
  bench.files.add(Fault("syncfs", EIO).run([&] {
    shut = true;
    bench.files.add(Fault("fstat", EIO).times(-1));
  }));
  bench.report(DiskOp::fdatasync, EIO);
  return shut && bench.fence.fenced();
}

bool no_sync_on_read_kind() {
  Bench bench;
  for (int i = 0; i < 20; ++i) {
    bench.report(DiskOp::read, EIO);
    bench.clock.advance_ms(20'000);
  }
  return !bench.fence.fenced() && bench.files.calls("syncfs") == 0 && bench.files.calls("fstat") == 20;
}

bool single_check() {
  Bench bench;
  const auto paused = PausePoints::arm("fence.check");
  bench.fence.report(DiskOp::read, EIO, "first");
  if (!paused->wait_for_arrival()) return false;
  for (int i = 0; i < 50; ++i) bench.fence.report(DiskOp::read, EIO, "meanwhile");
  paused->release();
  return bench.settle() && bench.fence.stats().checks == 2 && bench.fence.stats().checks_skipped == 50;
}

bool sync_rate_limit() {
  Bench bench;
  for (int i = 0; i < 30; ++i) bench.report(DiskOp::open, EIO);
  if (bench.files.calls("syncfs") != 1 || bench.files.calls("fstat") != 30) return false;
  bench.clock.advance_ms(10'001);
  bench.report(DiskOp::open, EIO);
  return bench.files.calls("syncfs") == 2;
}

bool stat_without_handle() {
  Bench bench(testing::TempDir() + "no_such_directory");
  bench.report(DiskOp::read, EIO);
  // ENOENT of the path is not the disk's death.
  if (bench.fence.fenced() || bench.files.calls("fstatat") != 1) return false;
  bench.files.add(Fault("fstatat", EIO));
  bench.report(DiskOp::read, EIO);
  return bench.fence.fenced();
}

bool handle_closed() {
  Bench bench;
  bench.report(DiskOp::write, EROFS);
  bench.fence.release_handle();
  return bench.files.open_fds() == 0;
}

struct Story {
  FenceRule rule;
  const char* name;
  bool (*holds)();
};
const Story kStories[] = {
    {FenceRule::kFenceNowClass, "FenceNowClass", fence_now_class},
    {FenceRule::kCheckClass, "CheckClass", check_class},
    {FenceRule::kIgnoreClass, "IgnoreClass", ignore_class},
    {FenceRule::kVerdictIsFstat, "VerdictIsFstat", verdict_is_fstat},
    {FenceRule::kSyncOnWriteKind, "SyncOnWriteKind", sync_on_write_kind},
    {FenceRule::kNoSyncOnReadKind, "NoSyncOnReadKind", no_sync_on_read_kind},
    {FenceRule::kSingleCheck, "SingleCheck", single_check},
    {FenceRule::kSyncRateLimit, "SyncRateLimit", sync_rate_limit},
    {FenceRule::kStatWithoutHandle, "StatWithoutHandle", stat_without_handle},
    {FenceRule::kHandleClosed, "HandleClosed", handle_closed},
};

class FenceRuleTest : public testing::TestWithParam<Story> {};

TEST_P(FenceRuleTest, HoldsAndIsNeeded) {
  EXPECT_TRUE(GetParam().holds());
  const FenceRuleSwitch off(GetParam().rule);
  EXPECT_FALSE(GetParam().holds()) << "the story does not show the rule";
}

INSTANTIATE_TEST_SUITE_P(All, FenceRuleTest, testing::ValuesIn(kStories),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CaseE04, ManyErrorsAtOnceFenceOnce) {
  Bench bench;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 50; ++i) threads.emplace_back([&] { bench.fence.report(DiskOp::write, EROFS, "x"); });
  threads.clear();
  bench.fence.fence("operator", DiskOp::write, EROFS);
  EXPECT_EQ(bench.fences, 1);
  EXPECT_EQ(bench.fence.reason().reason, "errno");
}

}  // namespace
}  // namespace ragfs
