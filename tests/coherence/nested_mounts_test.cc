// A mount inside another one's directory: both name one file alike, and what moves the inner root is not overlooked.
#include <gtest/gtest.h>

#include <filesystem>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/fixture.h"
#include "tests/coherence/hooked_file_system.h"
#include "tests/contract/backend_contract.h"

namespace ragfs {
namespace {

// localfs at a directory, and the same again at its subdirectory /a/sub; with names remembered as absent.
class NestedMounts : public CacheFixture {
 protected:
  void SetUp() override {
    CacheFixture::SetUp();
    std::filesystem::create_directories(dir_.path() + "/a/sub/deep");
    CachedMountConfig config;
    config.policy.negative_names = {"absent.md"};
    config.policy.negative_ttl_ms = 3'600'000;
    config.mount_path = "/outer";
    outer_hooks_ = std::make_shared<HookedFileSystem>(LocalFileSystem::open({.root_dir = dir_.path()}).value());
    backend = outer_hooks_;
    outer = std::make_shared<CachedFileSystem>(backend, domain, config);
    config.mount_path = "/inner";
    config.identity = backend->traits().identity;
    config.identity_prefix = "/a/sub";
    hooks_ = std::make_shared<HookedFileSystem>(LocalFileSystem::open({.root_dir = dir_.path() + "/a/sub"}).value());
    inner = std::make_shared<CachedFileSystem>(hooks_, domain, config);
  }
  void TearDown() override {
    inner.reset();
    outer.reset();
    CacheFixture::TearDown();
  }
  using Mount = std::shared_ptr<CachedFileSystem>;
  std::string read(const Mount& fs, std::string_view path) { return text_of(fs->read(ctx, path_of(path), 0, 0)); }
  // Twice: what the first may have cached must be right too.
  std::string read_twice(const Mount& fs, std::string_view path) {
    std::string first = read(fs, path);
    EXPECT_EQ(read(fs, path), first) << path;
    return first;
  }
  std::string names(const Mount& fs, std::string_view path) {
    std::string all;
    const auto entries = fs->read_dir(ctx, path_of(path));
    if (!entries) return "ERROR " + std::string(kind_name(entries.error().code));
    for (const FileInfo& entry : *entries) all += (all.empty() ? "" : " ") + entry.name;
    return all;
  }
  bool write(const Mount& fs, std::string_view path, std::string_view data) {
    return fs->write(ctx, path_of(path), data, 0, WriteFlag::create).has_value();
  }

  contract::TempDir dir_;
  std::shared_ptr<HookedFileSystem> outer_hooks_;
  std::shared_ptr<HookedFileSystem> hooks_;
  Mount outer;
  Mount inner;
};

TEST_F(NestedMounts, WhatOneWritesTheOtherReadsFromTheCache) {
  ASSERT_TRUE(write(outer, "/a/sub/f", "outer wrote"));
  EXPECT_EQ(read(inner, "/f"), "outer wrote");
  EXPECT_EQ(inner->count(CacheCounter::file_hit), 1U) << "one key for one file";
  ASSERT_TRUE(write(inner, "/f", "inner wrote"));
  EXPECT_EQ(read(outer, "/a/sub/f"), "inner wrote");
  EXPECT_EQ(outer->count(CacheCounter::file_hit), 1U);
  ASSERT_TRUE(inner->remove(ctx, path_of("/f")));
  EXPECT_EQ(read_twice(outer, "/a/sub/f"), "ERROR not_found");
}

TEST_F(NestedMounts, ListingsAndStatsFollowBothWays) {
  EXPECT_EQ(names(outer, "/a/sub"), "deep");
  EXPECT_EQ(names(inner, "/"), "deep");
  ASSERT_TRUE(write(inner, "/g", "x"));
  EXPECT_EQ(names(outer, "/a/sub"), "deep g");
  ASSERT_TRUE(outer->mkdir(ctx, path_of("/a/sub/new"), kDefaultDirMode));
  EXPECT_EQ(names(inner, "/"), "deep new g");
  ASSERT_TRUE(outer->rename(ctx, path_of("/a/sub/g"), path_of("/a/g")));
  EXPECT_EQ(names(inner, "/"), "deep new");
  EXPECT_EQ(kind_of(inner->stat(ctx, path_of("/g"))), "not_found");
}

TEST_F(NestedMounts, WhatIsRememberedAsAbsentEndsThroughEither) {
  EXPECT_EQ(read_twice(inner, "/absent.md"), "ERROR not_found");
  EXPECT_EQ(inner->count(CacheCounter::negative_hit), 1U);
  ASSERT_TRUE(write(outer, "/a/sub/absent.md", "there"));
  EXPECT_EQ(read(inner, "/absent.md"), "there");
  EXPECT_EQ(read_twice(outer, "/a/sub/deep/absent.md"), "ERROR not_found");
  ASSERT_TRUE(write(inner, "/deep/absent.md", "there"));
  EXPECT_EQ(read(outer, "/a/sub/deep/absent.md"), "there");
}

// The inner mount holds its directory open and follows it; its old place belongs to whatever comes there next.
TEST_F(NestedMounts, ARenameAboveTheInnerRootTakesItAlong) {
  ASSERT_TRUE(write(inner, "/f", "old place"));
  EXPECT_EQ(read(inner, "/f") + read(outer, "/a/sub/f"), "old placeold place");
  ASSERT_TRUE(outer->rename(ctx, path_of("/a"), path_of("/b")));
  EXPECT_EQ(read_twice(inner, "/f"), "old place");
  EXPECT_EQ(read_twice(outer, "/b/sub/f"), "old place");
  EXPECT_EQ(read_twice(outer, "/a/sub/f"), "ERROR not_found");

  ASSERT_TRUE(outer->mkdir(ctx, path_of("/a"), kDefaultDirMode) &&
              outer->mkdir(ctx, path_of("/a/sub"), kDefaultDirMode) && write(outer, "/a/sub/f", "another file"));
  EXPECT_EQ(read_twice(outer, "/a/sub/f"), "another file");
  EXPECT_EQ(read_twice(inner, "/f"), "old place") << "the object of the other file is not the inner one's";
  ASSERT_TRUE(write(inner, "/f", "inner wrote"));
  EXPECT_EQ(read_twice(outer, "/b/sub/f"), "inner wrote") << "it was cached under a name that the writer has not";
  EXPECT_EQ(read_twice(outer, "/a/sub/f"), "another file");
  ASSERT_TRUE(write(outer, "/b/sub/f", "outer wrote"));
  EXPECT_EQ(read_twice(inner, "/f"), "outer wrote");
  ASSERT_TRUE(inner->remove(ctx, path_of("/f")));
  EXPECT_EQ(read_twice(outer, "/b/sub/f"), "ERROR not_found");
  EXPECT_EQ(names(outer, "/b/sub"), "deep");
}

TEST_F(NestedMounts, ARemovalAboveTheInnerRootLeavesItNothingOfItsSuccessor) {
  ASSERT_TRUE(write(inner, "/f", "old"));
  EXPECT_EQ(read(inner, "/f"), "old");
  ASSERT_TRUE(outer->remove_all(ctx, path_of("/a")));
  const std::string gone = text_of(hooks_->read(ctx, path_of("/f"), 0, 0));
  EXPECT_TRUE(gone.starts_with("ERROR")) << gone;
  EXPECT_EQ(read_twice(inner, "/f"), gone);
  ASSERT_TRUE(outer->mkdir(ctx, path_of("/a"), kDefaultDirMode) &&
              outer->mkdir(ctx, path_of("/a/sub"), kDefaultDirMode) && write(outer, "/a/sub/f", "successor"));
  EXPECT_EQ(read_twice(outer, "/a/sub/f"), "successor");
  EXPECT_EQ(read_twice(inner, "/f"), gone) << "the cache answers as the backend does";
}

TEST_F(NestedMounts, WhatFailsOrHappensBelowTheRootLeavesTheCacheInUse) {
  ASSERT_TRUE(write(inner, "/f", "v"));
  EXPECT_EQ(kind_of(outer->remove(ctx, path_of("/a/sub"))), "directory_not_empty");
  EXPECT_EQ(kind_of(outer->rename(ctx, path_of("/a"), path_of("/no/such/place"))), "not_found");
  ASSERT_TRUE(outer->rename(ctx, path_of("/a/sub/deep"), path_of("/a/deep")));
  ASSERT_TRUE(write(outer, "/about", "x") && outer->rename(ctx, path_of("/about"), path_of("/elsewhere")));
  const uint64_t before = inner->count(CacheCounter::file_hit);
  (void)read(inner, "/f");
  EXPECT_EQ(read(inner, "/f"), "v");
  EXPECT_GT(inner->count(CacheCounter::file_hit), before);
}

// The reads and writes of the inner mount that began before the rename and end after it.
TEST_F(NestedMounts, CallsThatAreUnderWayDuringTheRenameStayRight) {
  for (const char* point : {"lookup.before_get", "fill.before_backend_read", "fill.after_backend_read",
                            "fill.before_put", "flight.leads"}) {
    TearDown();
    std::filesystem::remove_all(dir_.path() + "/a");
    std::filesystem::remove_all(dir_.path() + "/b");
    SetUp();
    ASSERT_TRUE(hooks_->write(ctx, path_of("/f"), "moved along", 0, WriteFlag::create));
    auto armed = PausePoints::arm(point);
    std::string seen;
    std::jthread reader([&] { seen = read(inner, "/f"); });
    ASSERT_TRUE(armed->wait_for_arrival()) << point;
    ASSERT_TRUE(outer->rename(ctx, path_of("/a"), path_of("/b")));
    ASSERT_TRUE(outer->mkdir(ctx, path_of("/a"), kDefaultDirMode) &&
                outer->mkdir(ctx, path_of("/a/sub"), kDefaultDirMode) && write(outer, "/a/sub/f", "new there"));
    EXPECT_EQ(read_twice(outer, "/a/sub/f"), "new there") << point;
    armed->release();
    reader.join();
    PausePoints::clear();
    EXPECT_EQ(seen, "moved along") << point;
    EXPECT_EQ(read_twice(outer, "/a/sub/f"), "new there") << point;
    EXPECT_EQ(read_twice(inner, "/f"), "moved along") << point;
  }
}

// The write looked before the rename had begun to move anything, and got its lock after it.
TEST_F(NestedMounts, AWriteThatWaitedForTheRenameIsSeenAtTheNewPlace) {
  ASSERT_TRUE(write(inner, "/f", "old"));
  auto renaming = PausePoints::arm("mutation.marked");
  std::jthread renamer([&] { EXPECT_TRUE(outer->rename(Context{}, path_of("/a"), path_of("/b"))); });
  ASSERT_TRUE(renaming->wait_for_arrival());
  bool written = false;
  std::jthread writer(
      [&] { written = inner->write(Context{}, path_of("/f"), "written meanwhile", 0, WriteFlag::create).has_value(); });
  PathLockTable& locks = domain->backend(backend->traits().identity)->mutation_locks;
  const Deadline until = Deadline::in_ms(20'000);
  while (locks.counts().waiting == 0 && !until.expired()) std::this_thread::yield();
  ASSERT_EQ(locks.counts().waiting, 1U);
  auto writing = PausePoints::arm("mutation.marked");
  renaming->release();
  renamer.join();
  ASSERT_TRUE(writing->wait_for_arrival());
  EXPECT_EQ(read_twice(outer, "/b/sub/f"), "old") << "must not stay in the cache";
  writing->release();
  writer.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(read_twice(outer, "/b/sub/f"), "written meanwhile");
  EXPECT_EQ(read_twice(inner, "/f"), "written meanwhile");
}

}  // namespace
}  // namespace ragfs
