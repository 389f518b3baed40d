// Restarts (3.6) over the disk tier: an orderly end is warm for the next process, any other end is never stale.
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/base/pause_point.h"
#include "tests/lives/instance_fixture.h"

namespace ragfs {
namespace {

class DiskRestarts : public InstanceFixture {
 protected:
  void SetUp() override {
    InstanceFixture::SetUp();
    std::filesystem::create_directories(disk());
  }
  std::string disk() const { return root + "/disk"; }
  // Objects of the life before are served as they are: no version check hides what the epoch should have refused.
  Config trusting() const { return configured("trust"); }
  Config verifying() const { return configured("verify"); }

  // A process that runs `work` with an instance and closes it in order; its exit status.
  int run(const Config& config, const std::function<bool(Instance&)>& work) {
    Child child([&](Child&) {
      auto instance = open(config);
      if (!instance || !work(*instance)) return 1;
      return close(*instance) ? 0 : 2;
    });
    return child.wait();
  }
  bool is_true(Instance& instance) const {
    bool right = true;
    for (const std::string name : {"f", "g"}) right = right && read(instance, "/" + name) == truth(name);
    return right;
  }

 private:
  Config configured(const std::string& warm) const {
    return config(fmt::format("      provider: embedded\n      embedded: {{dram_bytes: 16MiB, disk: {{directories: "
                              "['{}'], capacity_bytes: 64MiB, bucket_bytes: 1MiB, min_free_bytes: 0}}}}\n",
                              disk()),
                  ", warm: " + warm);
  }
};

TEST_F(DiskRestarts, AfterAnOrderlyCloseTheHitRateIsBack) {
  constexpr int kFiles = 300;
  for (int i = 0; i < kFiles; ++i) put(fmt::format("n{}", i), fmt::format("content {}", i));
  const auto read_all = [&](Instance& instance) {
    for (int i = 0; i < kFiles; ++i) {
      if (read(instance, fmt::format("/n{}", i)) != fmt::format("content {}", i)) return false;
    }
    return true;
  };
  for (const Config& config : {trusting(), verifying()}) {
    EXPECT_EQ(run(config, read_all), 0);
    const auto is_warm = [&](Instance& instance) {
      return read_all(instance) && instance.cache_report().warm && instance.cache_report().hits >= kFiles * 99 / 100;
    };
    EXPECT_EQ(run(config, is_warm), 0);
    EXPECT_EQ(run(config, is_warm), 0) << "and once more";
  }
}

TEST_F(DiskRestarts, WhatWasEditedWhileNothingRanIsReadAnew) {
  EXPECT_EQ(run(verifying(), [&](Instance& instance) { return is_true(instance); }), 0);
  put("f", "new");  // as long as before, and its time is set back
  EXPECT_EQ(run(verifying(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_F(DiskRestarts, WhatWasReplacedOrRemovedStaysSo) {
  const auto change = [&](Instance& instance) {
    return is_true(instance) && write(instance, "/f", "newer").empty() &&
           instance.fs().remove(Context(), *Path::parse("/g")).has_value();
  };
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(trusting(), change), 0);
  const auto stays = [&](Instance& instance) {
    return instance.cache_report().warm && read(instance, "/f") == "newer" && read(instance, "/g") == "<not_found>";
  };
  EXPECT_EQ(run(trusting(), stays), 0);
}

TEST_F(DiskRestarts, AnEmptiedOrMissingDirectoryIsAColdStart) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  std::filesystem::remove_all(disk());
  std::filesystem::create_directories(disk());
  put("f", "behind");
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return !instance.cache_report().warm && is_true(instance); }), 0);
  std::filesystem::remove_all(disk());
  put("f", "again");
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return !instance.cache_report().warm && is_true(instance); }), 0);
}

// The directory as it was some lives ago, as a restored backup brings it.
TEST_F(DiskRestarts, AnOlderCopyOfTheDirectoryIsNotBelieved) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  std::filesystem::copy(disk(), root + "/backup", std::filesystem::copy_options::recursive);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return write(instance, "/f", "new").empty(); }), 0);
  std::filesystem::remove_all(disk());
  std::filesystem::rename(root + "/backup", disk());
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
}

class DiskKilled : public DiskRestarts, public ::testing::WithParamInterface<const char*> {};

// The life before was closed in order; this one is killed on its way through start, mutation and close.
TEST_P(DiskKilled, AtThisStepTheNextLifeIsNeverStale) {
  const char* const point = GetParam();
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  Child victim([&](Child&) {
    PausePoints::set_handler(point, [] { (void)::kill(::getpid(), SIGKILL); });
    auto instance = open(trusting());
    if (!instance) return 1;
    (void)is_true(*instance);
    (void)write(*instance, "/f", "new");
    (void)instance->invalidate(*Path::parse("/g"));
    (void)is_true(*instance);
    (void)close(*instance);
    return 0;
  });
  EXPECT_EQ(victim.wait(), -SIGKILL) << point << " was not reached";
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, DiskKilled,
                         ::testing::Values("disk.recover", "disk.tombstone", "mutation.before_backend",
                                           "mutation.after_backend", "mutation.settled", "close.stopped",
                                           "close.drained", "disk.before_data", "disk.before_rename",
                                           "disk.after_rename", "disk.close", "disk.before_clean",
                                           "close.after_marker"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace ragfs
