// One file, several names: whatever name a mutation goes through, no name gives old bytes afterwards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/fixture.h"

namespace ragfs {
namespace {

class AliasTest : public CacheFixture {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ragfs_alias_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root = name;
    open_local();
  }
  void TearDown() override {
    cached.reset();
    domain.reset();
    std::filesystem::remove_all(root);
    CacheFixture::TearDown();
  }
  void open_local() {
    LocalConfig config;
    config.root_dir = root;
    auto local = LocalFileSystem::open(config);
    ASSERT_TRUE(local) << local.error().text();
    backend = std::shared_ptr<FileSystem>(*std::move(local));
    provider = std::make_shared<ScriptedProvider>();
    open_over({}, {});
  }
  std::string root;
};

TEST_F(AliasTest, WriteThroughASymlinkedDirectoryIsSeenUnderTheRealName) {
  ASSERT_TRUE(mkdir("/real"));
  ASSERT_TRUE(write("/real/f", "one"));
  std::filesystem::create_directory_symlink("real", root + "/link");
  EXPECT_EQ(read("/real/f"), "one");
  EXPECT_EQ(read("/link/f"), "one");
  ASSERT_TRUE(write("/link/f", "two"));
  EXPECT_EQ(read("/real/f"), "two");
  EXPECT_EQ(read("/link/f"), "two");
  ASSERT_TRUE(write("/real/f", "three"));
  EXPECT_EQ(read("/link/f"), "three");
  EXPECT_EQ(list("/link"), "f");
  ASSERT_TRUE(write("/real/g", "x"));
  EXPECT_EQ(list("/link"), "f g");
  EXPECT_EQ(list("/real"), "f g");
  ASSERT_TRUE(cached->remove(ctx, path_of("/link/g")));
  EXPECT_EQ(list("/real"), "f");
  EXPECT_EQ(stat_size("/real/g"), "ERROR not_found");
  ASSERT_TRUE(cached->rename(ctx, path_of("/link/f"), path_of("/link/h")));
  EXPECT_EQ(read("/real/f"), "ERROR not_found");
  EXPECT_EQ(read("/real/h"), "three");
}

TEST_F(AliasTest, HardLinksAreNeverCached) {
  ASSERT_TRUE(write("/a", "one"));
  std::filesystem::create_hard_link(root + "/a", root + "/b");
  cached->invalidate(ctx, path_of("/"));
  EXPECT_EQ(read("/a"), "one");
  EXPECT_EQ(read("/b"), "one");
  EXPECT_EQ(list("/"), "a b");
  ASSERT_TRUE(cached->write(ctx, path_of("/a"), "+", 0, WriteFlag::append));
  EXPECT_EQ(read("/b"), read_backend("/b"));
  EXPECT_EQ(stat_size("/b"), std::to_string(read_backend("/b").size()));
}

TEST_F(AliasTest, OtherSpellingsOfAPathAreTheSamePath) {
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "one"));
  for (const char* spelling : {"/d//f", "/./d/f", "/d/./f", "/d/f/"}) EXPECT_EQ(read(spelling), "one") << spelling;
  ASSERT_TRUE(write("/d/f", "two"));
  for (const char* spelling : {"/d//f", "/./d/f", "/d/./f", "/d/f/"}) EXPECT_EQ(read(spelling), "two") << spelling;
}

// A link that leads out of the root is not followed, whatever was cached under its name before.
TEST_F(AliasTest, ALinkOutOfTheRootShowsNothingOfWhatLiesThere) {
  char name[] = "/tmp/ragfs_alias_XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  std::filesystem::copy_file("/etc/hostname", std::string(name) + "/secret");
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/secret", "mine"));
  EXPECT_EQ(read("/d/secret"), "mine");
  EXPECT_EQ(list("/d"), "secret");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  std::filesystem::create_directory_symlink(name, root + "/d");
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(read("/d/secret"), read_backend("/d/secret"));
    EXPECT_TRUE(read("/d/secret").starts_with("ERROR"));
    EXPECT_TRUE(list("/d").starts_with("ERROR"));
    EXPECT_FALSE(write("/d/secret", "over it"));
  }
  std::filesystem::remove_all(name);
}

// memfs begins empty in every process: its identity is its instance's, so a provider that outlives it shows nothing.
TEST_F(AliasTest, MemfsAfterARestartShowsNothingOfTheOneBefore) {
  for (int run = 0; run < 2; ++run) {
    backend = std::shared_ptr<FileSystem>(MemFileSystem::open({}).value());
    open_over({}, {});
    EXPECT_EQ(read("/f"), "ERROR not_found");
    EXPECT_EQ(list("/"), "");
    EXPECT_TRUE(write("/f", "of run " + std::to_string(run)));
    EXPECT_EQ(read("/f"), "of run " + std::to_string(run));
  }
}

TEST_F(AliasTest, AnotherDirectoryAtTheSamePlaceNeverShowsTheFirst) {
  ASSERT_TRUE(write("/f", "first"));
  EXPECT_EQ(read("/f"), "first");
  char name[] = "/tmp/ragfs_alias_XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  LocalConfig config;
  config.root_dir = name;
  auto other = LocalFileSystem::open(config);
  ASSERT_TRUE(other);
  CachedFileSystem remounted(std::shared_ptr<FileSystem>(*std::move(other)), domain, {});
  EXPECT_EQ(text_of(remounted.read(ctx, path_of("/f"), 0, 0)), "ERROR not_found");
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace ragfs
