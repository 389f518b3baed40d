// read_at_once() and stat_at_once(): a hit for those who must not wait; what read() and stat() give, or nothing.
#include <gtest/gtest.h>

#include "ragfs/fs/agfs_view.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/path_lock_file_system.h"
#include "ragfs/fs/stats_file_system.h"
#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/fixture.h"

namespace ragfs {
namespace {

class AtOnce : public CacheFixture {
 protected:
  // The embedded provider: the one whose objects are found by their hash alone.
  void SetUp() override {
    CacheFixture::SetUp();
    open_embedded({});
  }
  void open_embedded(const CachedMountConfig& mount, CoherenceConfig config = {}) {
    cached.reset();
    domain = std::make_shared<CoherenceDomain>(std::move(config), *EmbeddedProvider::create({}));
    cached = std::make_shared<CachedFileSystem>(backend, domain, mount);
  }
  std::string at_once(std::string_view path) {
    const std::optional<Bytes> whole = cached->read_at_once(ctx, path_of(path));
    return whole ? whole->str() : "(nothing)";
  }
  // Until the records of what was written let a hit be judged without them.
  void settle(std::string_view path) {
    read(path);
    read(path);
    read(path);
  }
};

TEST_F(AtOnce, GivesAHitAndNothingElse) {
  put_in_backend("/d/a.md", "hello");
  EXPECT_EQ(at_once("/d/a.md"), "(nothing)") << "not in the cache";
  settle("/d/a.md");
  EXPECT_EQ(at_once("/d/a.md"), "hello");
  EXPECT_EQ(at_once("/d"), "(nothing)") << "a directory";
  EXPECT_EQ(at_once("/nope"), "(nothing)");
}

TEST_F(AtOnce, SharesTheMemoryOfTheCache) {
  put_in_backend("/a.md", std::string(4096, 'x'));
  settle("/a.md");
  const auto first = cached->read_at_once(ctx, path_of("/a.md"));
  const auto second = cached->read_at_once(ctx, path_of("/a.md"));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->data(), second->data()) << "no copy";
}

// The thread's turn to check a sum came once, and every later call was left to a thread that never took it.
TEST_F(AtOnce, ItsTurnToCheckASumDoesNotStopIt) {
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  for (int i = 0; i < 5'000; ++i) ASSERT_EQ(at_once("/a.md"), "hello") << i;
}

TEST_F(AtOnce, ADamagedObjectIsRefusedAndDropped) {
  CoherenceConfig config;
  config.verify_dram = VerifyDram::always;
  open_embedded({}, config);
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  {
    const auto whole = cached->read_at_once(ctx, path_of("/a.md"));
    ASSERT_TRUE(whole);
    const_cast<char*>(whole->data())[1] = 'a';  // as failing memory does
  }
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
  EXPECT_EQ(domain->counters().read(CacheCounter::damaged), 1U);
  EXPECT_EQ(read("/a.md"), "hello");
  EXPECT_EQ(domain->counters().read(CacheCounter::damaged), 1U) << "it was dropped";
  EXPECT_EQ(at_once("/a.md"), "hello");
}

TEST_F(AtOnce, IsNeverStale) {
  ASSERT_TRUE(write("/a.md", "one"));
  settle("/a.md");
  EXPECT_EQ(at_once("/a.md"), "one") << "a record covers it, and the hit was judged by it";
  ASSERT_TRUE(write("/a.md", "two"));
  EXPECT_NE(at_once("/a.md"), "one");
  settle("/a.md");
  EXPECT_EQ(at_once("/a.md"), "two");
  ASSERT_TRUE(cached->remove(ctx, path_of("/a.md")));
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
  ASSERT_TRUE(write("/a.md", "three"));
  ASSERT_TRUE(cached->rename(ctx, path_of("/a.md"), path_of("/b.md")));
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
}

TEST_F(AtOnce, NotWhereTheCacheIsOffOrPassedBy) {
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  ASSERT_EQ(at_once("/a.md"), "hello");
  Context past = ctx;
  past.bypass_cache = true;
  EXPECT_FALSE(cached->read_at_once(past, path_of("/a.md")));
  cached->set_enabled(false);
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
  EXPECT_FALSE(backend->read_at_once(ctx, path_of("/a.md"))) << "a backend may have to wait";
}

TEST_F(AtOnce, NotPastItsTimeToRevalidate) {
  CachedMountConfig mount;
  mount.revalidate_ms = 1;
  open_embedded(mount);
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  ASSERT_TRUE(cached->invalidate(ctx, path_of("/a.md")));
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
}

TEST_F(AtOnce, GoesThroughEveryLayerAndIsCounted) {
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  auto table = std::make_shared<MountTable>();
  auto per_mount = std::make_shared<StatsFileSystem>(cached);
  ASSERT_TRUE(table->mount(path_of("/m"), per_mount));
  auto counted = std::make_shared<StatsFileSystem>(
      std::make_shared<PathLockFileSystem>(table, std::make_shared<PathLocks>(PathLocksConfig())));
  AgfsView view(counted, table);
  const auto found = view.read_at_once(ctx, path_of("/m/a.md"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->str(), "hello");
  EXPECT_FALSE(view.read_at_once(ctx, path_of("/m/b.md")));
  EXPECT_FALSE(view.read_at_once(ctx, path_of("/other/a.md"))) << "no mount";
  EXPECT_EQ(counted->stats().snapshot(Operation::read).count, 1U) << "what was no answer is no read";
  EXPECT_EQ(per_mount->stats().snapshot(Operation::read).count, 1U);
  ASSERT_TRUE(view.stat_at_once(ctx, path_of("/m/a.md")));
  EXPECT_FALSE(view.stat_at_once(ctx, path_of("/m/b.md")));
  EXPECT_EQ(counted->stats().snapshot(Operation::stat).count, 1U);
}

TEST_F(AtOnce, StatsWhatAFileOrItsDirectoryTells) {
  put_in_backend("/d/a.md", "hello");
  put_in_backend("/d/b.md", "b");
  EXPECT_FALSE(cached->stat_at_once(ctx, path_of("/d/a.md"))) << "not in the cache";
  settle("/d/a.md");
  ASSERT_TRUE(cached->stat_at_once(ctx, path_of("/d/a.md")));
  EXPECT_EQ(cached->stat_at_once(ctx, path_of("/d/a.md"))->size, 5U);
  EXPECT_FALSE(cached->stat_at_once(ctx, path_of("/d/b.md")));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(list("/d"), "a.md b.md");
  ASSERT_TRUE(cached->stat_at_once(ctx, path_of("/d/b.md")));
  EXPECT_EQ(cached->stat_at_once(ctx, path_of("/d/b.md"))->name, "b.md");
  EXPECT_FALSE(cached->stat_at_once(ctx, path_of("/d/nope"))) << "what is absent is for stat() to say";
  ASSERT_TRUE(cached->chmod(ctx, path_of("/d/b.md"), 0600));
  const auto changed = cached->stat_at_once(ctx, path_of("/d/b.md"));
  EXPECT_TRUE(!changed || (changed->mode & 0777) == 0600);
  ASSERT_TRUE(cached->remove(ctx, path_of("/d/a.md")));
  EXPECT_FALSE(cached->stat_at_once(ctx, path_of("/d/a.md")));
}

// A caller that held a lock waited for the backend's version of a file that others write too.
TEST_F(AtOnce, NeverAsksTheBackendOfASharedTree) {
  CachedMountConfig mount;
  mount.use.shared = true;
  open_embedded(mount);
  put_in_backend("/a.md", "hello");
  settle("/a.md");
  EXPECT_EQ(at_once("/a.md"), "(nothing)");
  EXPECT_FALSE(cached->stat_at_once(ctx, path_of("/a.md")));
  EXPECT_EQ(read("/a.md"), "hello");
}

}  // namespace
}  // namespace ragfs
