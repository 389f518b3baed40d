// The witness and the locks on a real directory: modes, faults, copies, conflicts.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ragfs/base/faulty_files.h"
#include "ragfs/cache/lives/identity_lock.h"
#include "ragfs/cache/lives/witness.h"

namespace ragfs {
namespace {

namespace stdfs = std::filesystem;

class WitnessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "witness-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { stdfs::remove_all(root); }
  static mode_t mode_of(const std::string& path) {
    struct stat status = {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  // "none", "invalid" or the life.
  static std::string named(const StateDir& directory) {
    const Result<std::optional<uint64_t>> life = Witness(directory).read();
    if (!life) return "ERROR " + std::string(kind_name(life.error().code));
    if (!life->has_value()) return "none";
    return **life == 0 ? "invalid" : std::to_string(**life);
  }

  std::string root;
};

TEST_F(WitnessTest, IsNothingBeforeItIsWrittenAndNamesTheLifeAfter) {
  const StateDir directory(root + "/a/b");
  EXPECT_EQ(named(directory), "none");
  EXPECT_FALSE(stdfs::exists(root + "/a")) << "asking makes nothing";
  ASSERT_TRUE(Witness(directory).move_to(5, "me"));
  EXPECT_EQ(named(directory), "5");
  ASSERT_TRUE(Witness(directory).move_to(6, "me"));
  EXPECT_EQ(named(directory), "6");
}

TEST_F(WitnessTest, FilesAreThePersonsAlone) {
  const StateDir directory(root + "/a/b");
  ASSERT_TRUE(Witness(directory).move_to(5, "me"));
  ASSERT_TRUE(lock_identity(directory, 1, LockKind::exclusive, "me"));
  EXPECT_EQ(mode_of(root + "/a"), 0700U);
  EXPECT_EQ(mode_of(root + "/a/b"), 0700U);
  EXPECT_EQ(mode_of(root + "/a/b/witness"), 0600U);
  EXPECT_EQ(mode_of(root + "/a/b/lock-0000000000000001"), 0600U);
}

TEST_F(WitnessTest, ACopiedOrRestoredOneIsInvalid) {
  const StateDir directory(root + "/a");
  ASSERT_TRUE(Witness(directory).move_to(5, "me"));
  stdfs::copy(root + "/a", root + "/b", stdfs::copy_options::recursive);
  EXPECT_EQ(named(StateDir(root + "/b")), "invalid");
  stdfs::copy_file(root + "/a/witness", root + "/backup");
  ASSERT_TRUE(Witness(directory).move_to(6, "me"));
  stdfs::remove(root + "/a/witness");
  stdfs::copy_file(root + "/backup", root + "/a/witness");
  EXPECT_EQ(named(directory), "invalid");
  stdfs::rename(root + "/a", root + "/moved");
  ASSERT_TRUE(Witness(StateDir(root + "/moved")).move_to(7, "me"));
  EXPECT_EQ(named(StateDir(root + "/moved")), "7");
}

TEST_F(WitnessTest, ADamagedOneIsInvalid) {
  const StateDir directory(root + "/a");
  ASSERT_TRUE(Witness(directory).move_to(5, "me"));
  ASSERT_EQ(::truncate((root + "/a/witness").c_str(), 20), 0);
  EXPECT_EQ(named(directory), "invalid");
}

TEST_F(WitnessTest, AFailedStepIsAnErrorAndLeavesNoTempFile) {
  for (const char* call : {"openat", "statx", "write", "fsync", "renameat2"}) {
    FaultyFiles files;
    const StateDir directory(root + "/" + call, files);
    ASSERT_TRUE(Witness(directory).move_to(5, "me"));
    files.add(FaultyFiles::Fault(call, ENOSPC).on("").after(std::string_view(call) == "openat" ? 1 : 0));
    EXPECT_FALSE(Witness(directory).move_to(6, "me")) << call;
    files.clear();
    EXPECT_EQ(named(directory), "5") << call;
    const auto entries = std::distance(stdfs::directory_iterator(directory.path()), stdfs::directory_iterator());
    EXPECT_EQ(entries, 1) << call;
  }
}

TEST_F(WitnessTest, WhatCouldNotBeReadIsAnErrorAndNotNone) {
  FaultyFiles files;
  const StateDir directory(root + "/a", files);
  ASSERT_TRUE(Witness(directory).move_to(5, "me"));
  files.add(FaultyFiles::Fault("pread", EIO));
  EXPECT_EQ(named(directory), "ERROR io");
}

TEST_F(WitnessTest, TheStateDirectoryIsBelowTheHomeOfStateByDefault) {
  std::map<std::string, std::optional<std::string>> before;
  for (const char* name : {"XDG_STATE_HOME", "HOME"}) {
    const char* value = std::getenv(name);
    before[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  (void)::setenv("HOME", "/users/somebody", 1);
  (void)::setenv("XDG_STATE_HOME", "/var/state", 1);
  EXPECT_EQ(StateDir::default_path("ns"), "/var/state/ragfs/ns");
  (void)::unsetenv("XDG_STATE_HOME");
  EXPECT_EQ(StateDir::default_path("ns"), "/users/somebody/.local/state/ragfs/ns");
  (void)::unsetenv("HOME");
  EXPECT_EQ(StateDir::default_path("ns"), "");
  for (const auto& [name, value] : before) {
    if (value) (void)::setenv(name.c_str(), value->c_str(), 1);
  }
}

TEST_F(WitnessTest, TheStateDirectoryMustNotBeServed) {
  stdfs::create_directories(root + "/served/inner");
  stdfs::create_directory_symlink(root + "/served", root + "/link");
  EXPECT_FALSE(StateDir(root + "/served").check_outside({root + "/served"}));
  EXPECT_FALSE(StateDir(root + "/served/inner/new").check_outside({root + "/served/"}));
  EXPECT_FALSE(StateDir(root + "/link/new").check_outside({root + "/served"}));
  EXPECT_TRUE(StateDir(root + "/served-not").check_outside({root + "/served"}));
  EXPECT_TRUE(StateDir(root).check_outside({root + "/served"})) << "around it is not in it";
}

TEST_F(WitnessTest, OneExclusiveHolderOrManyShared) {
  const StateDir directory(root + "/a");
  {
    const auto first = lock_identity(directory, 1, LockKind::exclusive, "pid 4711 on host");
    ASSERT_TRUE(first);
    const auto second = lock_identity(directory, 1, LockKind::shared, "other");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::lock_conflict);
    EXPECT_EQ(second.error().message, "pid 4711 on host");
    EXPECT_TRUE(lock_identity(directory, 2, LockKind::exclusive, "other")) << "another identity";
  }
  const auto third = lock_identity(directory, 1, LockKind::shared, "other");
  ASSERT_TRUE(third) << "the first is gone";
  EXPECT_TRUE(lock_identity(directory, 1, LockKind::shared, "other"));
  EXPECT_FALSE(lock_identity(directory, 1, LockKind::exclusive, "other"));
}

}  // namespace
}  // namespace ragfs
