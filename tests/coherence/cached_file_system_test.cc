// The cases that the RFC names: what is cached, and what a mutation leaves behind.
#include <gtest/gtest.h>

#include "tests/coherence/fixture.h"

namespace ragfs {
namespace {

class CachedFileSystemTest : public CacheFixture {};

TEST_F(CachedFileSystemTest, SecondReadHits) {
  put_in_backend("/a/f.md", "one");
  EXPECT_EQ(read("/a/f.md"), "one");
  EXPECT_EQ(hits(), 0U);
  EXPECT_EQ(read("/a/f.md"), "one");
  EXPECT_EQ(hits(), 1U);
}

TEST_F(CachedFileSystemTest, WriteThroughIsHitAtOnce) {
  ASSERT_TRUE(write("/f.md", "one"));
  EXPECT_EQ(read("/f.md"), "one");
  EXPECT_EQ(hits(), 1U);
  ASSERT_TRUE(write("/f.md", "two"));
  EXPECT_EQ(read("/f.md"), "two");
  EXPECT_EQ(hits(), 2U);
}

TEST_F(CachedFileSystemTest, RangesOfCachedFilesComeFromTheWholeObject) {
  ASSERT_TRUE(write("/f.md", "0123456789"));
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f.md"), 3, 4)), "3456");
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f.md"), 8, 100)), "89");
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f.md"), 10, 1)), "");
  EXPECT_EQ(hits(), 3U);
}

TEST_F(CachedFileSystemTest, EveryWayOfWritingIsSeen) {
  ASSERT_TRUE(write("/f.md", "abcdef"));
  ASSERT_TRUE(cached->write(ctx, path_of("/f.md"), "XY", 2, WriteFlag::none));
  EXPECT_EQ(read("/f.md"), "abXYef");
  ASSERT_TRUE(cached->write(ctx, path_of("/f.md"), "!", 0, WriteFlag::append));
  EXPECT_EQ(read("/f.md"), "abXYef!");
  ASSERT_TRUE(cached->truncate(ctx, path_of("/f.md"), 3));
  EXPECT_EQ(read("/f.md"), "abX");
  EXPECT_TRUE(*cached->compare_and_write(ctx, path_of("/f.md"), "abX", "new"));
  EXPECT_EQ(read("/f.md"), "new");
  EXPECT_FALSE(*cached->compare_and_write(ctx, path_of("/f.md"), "old", "no"));
  EXPECT_EQ(read("/f.md"), "new");
  EXPECT_TRUE(*cached->compare_and_remove(ctx, path_of("/f.md"), "new"));
  EXPECT_EQ(read("/f.md"), "ERROR not_found");
}

TEST_F(CachedFileSystemTest, ListingsAreCachedAndFollowEveryMutation) {
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/a.md", "1"));
  EXPECT_EQ(list("/d"), "a.md");
  EXPECT_EQ(list("/d"), "a.md");
  EXPECT_EQ(cached->count(CacheCounter::directory_hit), 1U);
  ASSERT_TRUE(write("/d/b.md", "22"));
  EXPECT_EQ(list("/d"), "a.md b.md");
  EXPECT_EQ(stat_size("/d/b.md"), "2");
  ASSERT_TRUE(cached->write(ctx, path_of("/d/b.md"), "333", 0, WriteFlag::append));
  EXPECT_EQ(stat_size("/d/b.md"), "5");
  ASSERT_TRUE(mkdir("/d/sub"));
  EXPECT_EQ(list("/d"), "sub a.md b.md");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/b.md"), path_of("/d/sub/c.md")));
  EXPECT_EQ(list("/d"), "sub a.md");
  EXPECT_EQ(list("/d/sub"), "c.md");
  ASSERT_TRUE(cached->remove(ctx, path_of("/d/sub/c.md")));
  EXPECT_EQ(list("/d/sub"), "");
  ASSERT_TRUE(cached->remove(ctx, path_of("/d/sub")));
  EXPECT_EQ(list("/d"), "a.md");
  EXPECT_EQ(list("/d/sub"), "ERROR not_found");
}

TEST_F(CachedFileSystemTest, RemoveAllLeavesNoDescendant) {
  for (const char* path : {"/t/a.md", "/t/x/b.md", "/t/x/y/c.md"}) put_in_backend(path, "old");
  for (const char* path : {"/t/a.md", "/t/x/b.md", "/t/x/y/c.md"}) EXPECT_EQ(read(path), "old");
  EXPECT_EQ(list("/t/x"), "y b.md");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/t")));
  for (const char* path : {"/t/a.md", "/t/x/b.md", "/t/x/y/c.md"}) EXPECT_EQ(read(path), "ERROR not_found");
  EXPECT_EQ(list("/t/x"), "ERROR not_found");
  ASSERT_TRUE(mkdir("/t"));
  ASSERT_TRUE(mkdir("/t/x"));
  EXPECT_EQ(list("/t/x"), "");
  EXPECT_EQ(read("/t/x/b.md"), "ERROR not_found");
}

TEST_F(CachedFileSystemTest, DirectoryRenameMovesEverythingAndTheHistoricTargetIsGone) {
  put_in_backend("/old/f.md", "new bytes");
  put_in_backend("/target/f.md", "historic");
  EXPECT_EQ(read("/target/f.md"), "historic");
  EXPECT_EQ(read("/old/f.md"), "new bytes");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/target")));
  ASSERT_TRUE(cached->rename(ctx, path_of("/old"), path_of("/target")));
  EXPECT_EQ(read("/target/f.md"), "new bytes");
  EXPECT_EQ(read("/old/f.md"), "ERROR not_found");
  EXPECT_EQ(stat_size("/old"), "ERROR not_found");
}

TEST_F(CachedFileSystemTest, MkdirClearsTheHistoryOfItsPath) {
  ASSERT_TRUE(write("/p", "a file once"));
  EXPECT_EQ(read("/p"), "a file once");
  ASSERT_TRUE(cached->remove(ctx, path_of("/p")));
  ASSERT_TRUE(mkdir("/p"));
  EXPECT_EQ(read("/p"), "ERROR is_a_directory");
  EXPECT_EQ(list("/p"), "");
}

TEST_F(CachedFileSystemTest, LockAndControlFilesAlwaysBypass) {
  for (const char* name : {".path.ovlock", ".exact.ovlock.x.123", "a.lock", "b.lck", "enqueue", "size", "pid"}) {
    const std::string path = std::string("/q/") + name;
    put_in_backend(path, "1");
    EXPECT_EQ(read(path), "1");
    put_in_backend(path, "2");  // behind the cache: a control file changes by itself
    EXPECT_EQ(read(path), "2") << name;
  }
  EXPECT_TRUE(provider->keys().empty());
  EXPECT_EQ(list("/q"), "a.lock b.lck enqueue pid size");
}

TEST_F(CachedFileSystemTest, TooLargeIsReadAndNotCached) {
  CachedMountConfig mount;
  mount.policy.max_file_size_bytes = 4;
  open({}, mount);
  ASSERT_TRUE(write("/big", "12345"));
  ASSERT_TRUE(write("/fits", "1234"));
  EXPECT_EQ(read("/big"), "12345");
  EXPECT_EQ(read("/big"), "12345");
  EXPECT_EQ(hits(), 0U);
  EXPECT_EQ(read("/fits"), "1234");
  EXPECT_EQ(hits(), 1U);
}

TEST_F(CachedFileSystemTest, EmptyFileAbsentFileAndEmptyDirectoryAreThreeAnswers) {
  ASSERT_TRUE(write("/empty", ""));
  ASSERT_TRUE(mkdir("/dir"));
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(read("/empty"), "");
    EXPECT_EQ(list("/dir"), "");
    EXPECT_EQ(read("/absent"), "ERROR not_found");
    EXPECT_EQ(read("/dir"), "ERROR is_a_directory");
  }
  EXPECT_EQ(hits(), 2U);
}

TEST_F(CachedFileSystemTest, StatAndExistsAgreeWithTheBackendAfterEveryMutation) {
  put_in_backend("/d/f.md", "12345");
  const auto agree = [&](const char* when) {
    for (const char* path : {"/", "/d", "/d/f.md", "/d/g.md", "/d/sub", "/d/sub/h.md"}) {
      for (int pass = 0; pass < 2; ++pass) {
        (void)cached->read_dir(ctx, path_of("/d"));
        (void)cached->read(ctx, path_of(path), 0, 0);
        const auto mine = cached->stat(ctx, path_of(path));
        const auto truth = backend->stat(ctx, path_of(path));
        ASSERT_EQ(mine.has_value(), truth.has_value()) << when << " " << path;
        if (mine) {
          EXPECT_EQ(*mine, *truth) << when << " " << path;
        }
        EXPECT_EQ(*cached->exists(ctx, path_of(path)), truth.has_value()) << when << " " << path;
      }
    }
  };
  agree("at first");
  ASSERT_TRUE(cached->write(ctx, path_of("/d/f.md"), "67", 0, WriteFlag::append));
  agree("append");
  ASSERT_TRUE(cached->chmod(ctx, path_of("/d/f.md"), 0600));
  agree("chmod");
  ASSERT_TRUE(cached->touch(ctx, path_of("/d/f.md")));
  agree("touch");
  ASSERT_TRUE(cached->create(ctx, path_of("/d/g.md")));
  agree("create");
  ASSERT_TRUE(cached->ensure_parent_dirs(ctx, path_of("/d/sub/h.md"), kDefaultDirMode));
  agree("ensure_parent_dirs");
  ASSERT_TRUE(cached->copy(ctx, path_of("/d/f.md"), path_of("/d/sub/h.md")));
  agree("copy");
  ASSERT_TRUE(cached->replace(ctx, path_of("/d/sub/h.md"), path_of("/d/g.md")));
  agree("replace");
  ASSERT_TRUE(cached->remove(ctx, path_of("/d/sub")));
  agree("remove of an empty directory");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  agree("remove_all");
}

TEST_F(CachedFileSystemTest, BypassContextAsksTheBackendAndMayFill) {
  ASSERT_TRUE(write("/f", "cached"));
  put_in_backend("/f", "changed behind");
  EXPECT_EQ(read("/f"), "cached");
  Context bypass;
  bypass.bypass_cache = true;
  EXPECT_EQ(text_of(cached->read(bypass, path_of("/f"), 0, 0)), "changed behind");
  EXPECT_EQ(read("/f"), "changed behind");
}

TEST_F(CachedFileSystemTest, SwitchedOffServesTheBackendAndStillRecords) {
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(read("/f"), "one");
  cached->set_enabled(false);
  ASSERT_TRUE(write("/f", "two"));
  EXPECT_EQ(read("/f"), "two");
  cached->set_enabled(true);
  EXPECT_EQ(read("/f"), "two");
}

TEST_F(CachedFileSystemTest, InvalidateRefusesWhatIsBelow) {
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "one"));
  put_in_backend("/d/f", "two");
  EXPECT_EQ(read("/d/f"), "one");
  ASSERT_TRUE(cached->invalidate(ctx, path_of("/d")));
  EXPECT_EQ(read("/d/f"), "two");
}

TEST_F(CachedFileSystemTest, RecordsAreLetGoWhenNothingOlderCanComeBack) {
  ASSERT_TRUE(mkdir("/d"));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(write("/d/f" + std::to_string(i), "x"));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(5'000)));
  EXPECT_EQ(domain->table().path_records(), 0U);
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  EXPECT_EQ(domain->table().subtree_records(), 1U);
  ASSERT_TRUE(domain->settler().sweep());
  EXPECT_EQ(domain->table().subtree_records(), 0U);
  EXPECT_EQ(read("/d/f1"), "ERROR not_found");
}

TEST_F(CachedFileSystemTest, TreeAndGlobWalkCachedListingsWithTheBackendsResults) {
  for (const char* path : {"/r/a/one.md", "/r/a/.hidden.md", "/r/b/two.md", "/r/b/c/three.md"})
    put_in_backend(path, "x");
  const auto mine = cached->tree(ctx, path_of("/r"), {});
  const auto truth = backend->tree(ctx, path_of("/r"), {});
  ASSERT_TRUE(mine && truth);
  ASSERT_EQ(mine->size(), truth->size());
  for (size_t i = 0; i < mine->size(); ++i) {
    EXPECT_EQ((*mine)[i].path, (*truth)[i].path);
    EXPECT_EQ((*mine)[i].info, (*truth)[i].info);
  }
  const uint64_t listed = cached->count(CacheCounter::directory_miss);
  const auto page = cached->glob(ctx, path_of("/r"), "**/*.md", {});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->entries.size(), 3U);
  EXPECT_EQ(cached->count(CacheCounter::directory_miss), listed);
}

}  // namespace
}  // namespace ragfs
