// More than one writer (3.9), with everything in place: clients of one process, processes, forks.
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/lives/instance_fixture.h"

namespace ragfs {
namespace {

using Clients = InstanceFixture;

size_t entries_of(const std::string& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST_F(Clients, TwoOfAProcessNeverDisagree) {
  auto one = open(config());
  auto other = open(config());
  auto without = open(config("      enabled: false\n"));
  ASSERT_TRUE(one && other && without);
  EXPECT_TRUE(without->warnings().empty());
  int round = 0;
  for (Instance* writer : {one.get(), other.get(), without.get(), one.get()}) {
    for (Instance* reader : {one.get(), other.get(), without.get()}) (void)read(*reader, "/f");
    const std::string text = "round " + std::to_string(round++);
    EXPECT_EQ(write(*writer, "/f", text), "");
    for (Instance* reader : {one.get(), other.get(), without.get()}) EXPECT_EQ(read(*reader, "/f"), text);
  }
  EXPECT_TRUE(close(*one));
  EXPECT_TRUE(hits(*other, "/f")) << "the last one to go closes it";
  EXPECT_EQ(write(*other, "/f", "after"), "");
  EXPECT_EQ(read(*without, "/f"), "after");
}

TEST_F(Clients, WhatOneCannotHaveBesideAnotherIsRefusedByName) {
  auto one = open(config());
  ASSERT_TRUE(one);
  const auto refused = Instance::open(config("      embedded: {dram_bytes: 1MiB}\n"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config);
  EXPECT_NE(refused.error().message.find("embedded.dram_bytes: 0;"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(Instance::open(config("      namespace: mine\n      enabled: false\n"))) << "a namespace of its own";
  one.reset();
  EXPECT_TRUE(Instance::open(config("      embedded: {dram_bytes: 1MiB}\n"))) << "nobody is left";
}

TEST_F(Clients, ASecondProcessIsReadOnlyAndToldByWhom) {
  Child first([&](Child& self) {
    auto instance = open(config());
    const bool good = instance && read(*instance, "/f") == "old";
    self.say();
    self.wait_for_go();
    return good && write(*instance, "/f", "by the first").empty() && close(*instance) ? 0 : 1;
  });
  ASSERT_TRUE(first.wait_for_word());
  {
    auto second = open(config());
    ASSERT_TRUE(second);
    EXPECT_EQ(read(*second, "/f"), "old");
    EXPECT_FALSE(hits(*second, "/f"));
    const std::string refusal = write(*second, "/f", "by the second");
    EXPECT_NE(refusal.find("pid " + std::to_string(first.pid())), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("shared: true"), std::string::npos) << refusal;
    EXPECT_EQ(second->warnings().size(), 1U);
    auto without = Instance::open(config("      enabled: false\n"));
    ASSERT_TRUE(without);
    EXPECT_NE(write(**without, "/f", "by the second"), "") << "cache off is no way around";
    first.go();
    EXPECT_EQ(first.wait(), 0);
    EXPECT_EQ(read(*second, "/f"), "by the first");
    EXPECT_TRUE(close(**without) && close(*second));
  }
  auto third = open(config());
  ASSERT_TRUE(third);
  EXPECT_EQ(write(*third, "/f", "by the third"), "");
  EXPECT_TRUE(hits(*third, "/f"));
}

TEST_F(Clients, SharedProcessesSeeEachOthersWritesAtTheNextRead) {
  const std::string shared = "      shared: true\n";
  Child other([&](Child& self) {
    auto instance = open(config(shared));
    bool good = instance && read(*instance, "/f") == "old" && hits(*instance, "/f");
    self.say();
    self.wait_for_go();
    good = good && read(*instance, "/f") == "by the test" && write(*instance, "/f", "by the child").empty();
    return good ? 0 : 1;
  });
  ASSERT_TRUE(other.wait_for_word());
  auto instance = open(config(shared));
  ASSERT_TRUE(instance);
  EXPECT_EQ(read(*instance, "/f"), "old");
  EXPECT_EQ(write(*instance, "/f", "by the test"), "");
  other.go();
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(read(*instance, "/f"), "by the child");
  EXPECT_EQ(instance->fs().read_dir(Context(), PathView())->size(), 2U);
}

TEST_F(Clients, BesideAWriterWithoutACacheEveryReadIsChecked) {
  Child other([&](Child& self) {
    auto instance = open(config("      enabled: false\n"));
    bool good = instance && write(*instance, "/g", "by the child").empty();
    self.say();
    self.wait_for_go();
    good = good && write(*instance, "/f", "new").empty();
    self.say();
    self.wait_for_go();
    return good ? 0 : 1;
  });
  ASSERT_TRUE(other.wait_for_word());
  auto instance = open(config());
  ASSERT_TRUE(instance);
  ASSERT_EQ(instance->warnings().size(), 1U);
  EXPECT_NE(instance->warnings()[0].find("other processes write it too"), std::string::npos);
  EXPECT_EQ(read(*instance, "/f"), "old");
  EXPECT_TRUE(hits(*instance, "/f")) << "checked, and good";
  other.go();
  ASSERT_TRUE(other.wait_for_word());
  EXPECT_EQ(read(*instance, "/f"), "new");
  other.go();
  EXPECT_EQ(other.wait(), 0);
}

TEST_F(Clients, ProcessesWithoutACacheDoNotDisturbEachOther) {
  const std::string off = "      enabled: false\n";
  Child other([&](Child& self) {
    auto instance = open(config(off));
    bool good = instance && write(*instance, "/f", "by the child").empty();
    self.say();
    self.wait_for_go();
    good = good && read(*instance, "/f") == "by the test" && write(*instance, "/g", "by the child").empty();
    return good ? 0 : 1;
  });
  ASSERT_TRUE(other.wait_for_word());
  auto instance = open(config(off));
  ASSERT_TRUE(instance);
  EXPECT_TRUE(instance->warnings().empty());
  EXPECT_EQ(read(*instance, "/f"), "by the child");
  EXPECT_EQ(write(*instance, "/f", "by the test"), "");
  other.go();
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(read(*instance, "/g"), "by the child");
}

TEST_F(Clients, AChildOfForkLeavesCacheAndLockToItsParent) {
  // Made before there are threads, as it starts some.
  Child newcomer([&](Child& self) {
    self.wait_for_go();
    auto late = open(config());
    return late && write(*late, "/f", "by the newcomer").find("holds these files") != std::string::npos ? 0 : 1;
  });
  auto instance = open(config());
  ASSERT_TRUE(instance);
  EXPECT_EQ(read(*instance, "/f"), "old");
  Child child([&](Child& self) {
    self.say();
    self.wait_for_go();
    const bool sees_it = read(*instance, "/f") == "by the parent" && !hits(*instance, "/f");
    const bool refused = write(*instance, "/f", "by the child").find("fork()") != std::string::npos;
    self.say();
    self.wait_for_go();
    instance.reset();
    return sees_it && refused ? 0 : 1;
  });
  ASSERT_TRUE(child.wait_for_word());
  EXPECT_EQ(write(*instance, "/f", "by the parent"), "");
  child.go();
  ASSERT_TRUE(child.wait_for_word());
  child.go();
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(truth("f"), "by the parent");
  EXPECT_TRUE(hits(*instance, "/f"));
  newcomer.go();
  EXPECT_EQ(newcomer.wait(), 0) << "the lock is the parent's still";
}

// A provider that cannot even be made (here: no address space for its memory) is not joined later: it is none.
TEST_F(Clients, AStartWhoseProviderCannotBeMadeGoesOnWithoutOneInBypassModeOnly) {
  if (std::getenv("RAGFS_TEST_SANITIZER") != nullptr) GTEST_SKIP() << "a sanitizer needs the address space itself";
  for (const bool strict : {false, true}) {
    Child child([&](Child&) {
      constexpr rlim_t kAll = rlim_t{64} << 30;
      const struct rlimit limit = {kAll, kAll};
      if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
      const std::string mode = std::string("      failure_mode: ") + (strict ? "strict" : "bypass") + "\n";
      auto opened = Instance::open(config(mode + "      embedded: {dram_bytes: 256GiB}\n"));
      if (strict) return !opened && opened.error().code == ErrorCode::full ? 0 : 2;
      if (!opened || (*opened)->warnings().size() != 1) return 3;
      Instance& instance = **opened;
      if ((*opened)->warnings()[0].find("going on without the cache") == std::string::npos) return 4;
      const CacheReport report = instance.cache_report();
      if (report.provider != "disabled" || report.life != "off") return 5;
      bool right = read(instance, "/f") == "old" && write(instance, "/f", "new").empty();
      right = right && read(instance, "/f") == "new" && !hits(instance, "/f");
      return right && close(instance) ? 0 : 6;
    });
    EXPECT_EQ(child.wait(), 0) << (strict ? "strict" : "bypass");
  }
}

TEST_F(Clients, TheStateDirectoryIsForItsOwnerAloneAndLocksLeaveNothing) {
  auto instance = open(config());
  ASSERT_TRUE(instance);
  const std::string directory = root + "/state";
  struct stat status = {};
  ASSERT_EQ(::stat(directory.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  ASSERT_EQ(entries_of(directory), 1U);
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U) << entry.path();
  }
  EXPECT_TRUE(close(*instance));
  EXPECT_EQ(entries_of(directory), 0U);
}

TEST_F(Clients, AStateDirectoryBelowWhatIsShownIsRefused) {
  state = "./files/state";
  const auto refused = Instance::open(config());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::config);
  EXPECT_NE(refused.error().message.find("state_dir"), std::string::npos) << refused.error().message;
}

TEST_F(Clients, AfterTheEndNoThreadAndNoDescriptorIsLeft) {
  {
    auto warm_up = open(config());
  }
  const size_t threads = entries_of("/proc/self/task");
  const size_t descriptors = entries_of("/proc/self/fd");
  for (int i = 0; i < 3; ++i) {
    auto instance = open(config());
    ASSERT_TRUE(instance);
    EXPECT_EQ(write(*instance, "/f", "x"), "");
    EXPECT_TRUE(close(*instance));
  }
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
}

}  // namespace
}  // namespace ragfs
