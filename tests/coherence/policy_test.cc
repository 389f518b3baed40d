// What the policy says of a path is what the cache does with it: classes, limits, admission of writes, shares.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class PolicyOfTheCache : public HookedFixture {
 protected:
  void open_with(CachePolicyConfig policy) {
    CachedMountConfig mount;
    mount.policy = std::move(policy);
    open_hooked({}, mount, clock);
  }
  // Whether a second read of the same needs the backend again.
  bool keeps_file(std::string_view path) {
    (void)read(path);
    const uint64_t before = hooked->calls("read_file") + hooked->calls("read");
    (void)read(path);
    return hooked->calls("read_file") + hooked->calls("read") == before;
  }
  bool keeps_listing(std::string_view path) {
    (void)list(path);
    const uint64_t before = hooked->calls("read_dir");
    (void)list(path);
    return hooked->calls("read_dir") == before;
  }
  bool provider_holds(std::string_view path, ObjectKind kind) {
    const Path at = path_of(path);
    const auto identity = domain->backend(backend->traits().identity);
    const auto got = provider->get(domain->key(CachePath(*identity, at), kind), Deadline::never());
    return got && got->has_value();
  }
  ManualClock clock;
};

TEST_F(PolicyOfTheCache, EveryClassIsKeptAsItSays) {
  open_with({.bypass_prefixes = {"/tmp"},
             .permission_dependent_prefixes = {"/private"},
             .negative_only_prefixes = {"/new"},
             .no_prefetch_prefixes = {"/hot"},
             .negative_ttl_ms = 1'000});
  for (const char* directory : {"/tmp", "/private", "/new", "/hot", "/a"}) {
    put_in_backend(std::string(directory) + "/f", "data");
    const bool cacheable = directory == std::string("/hot") || directory == std::string("/a");
    EXPECT_EQ(keeps_file(std::string(directory) + "/f"), cacheable) << directory;
    EXPECT_EQ(keeps_listing(directory), cacheable) << directory;
    EXPECT_TRUE(write(std::string(directory) + "/w", "new"));
    EXPECT_EQ(provider_holds(std::string(directory) + "/w", ObjectKind::file), cacheable) << directory;
    EXPECT_EQ(provider_holds(directory, ObjectKind::file), false);
    EXPECT_EQ(stat_size(std::string(directory) + "/w"), "3");
  }
}

TEST_F(PolicyOfTheCache, OnlyWhatIsNamedCacheableIs) {
  open_with({.cacheable_prefixes = {"/docs"}});
  put_in_backend("/docs/a/f", "1");
  put_in_backend("/other/f", "1");
  EXPECT_TRUE(keeps_file("/docs/a/f"));
  EXPECT_TRUE(keeps_listing("/docs/a"));
  EXPECT_FALSE(keeps_file("/other/f"));
  EXPECT_FALSE(keeps_listing("/"));
}

TEST_F(PolicyOfTheCache, OfNegativeOnlyPathsAbsenceAloneIsRememberedUntilItsTimeOrACreation) {
  open_with({.negative_only_prefixes = {"/new"}, .negative_ttl_ms = 1'000});
  put_in_backend("/new/there", "data");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/new/any.name"), "ERROR not_found");
  EXPECT_EQ(hooked->calls("read"), 1U);
  EXPECT_EQ(cached->count(CacheCounter::negative_hit), 2U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/new/there"), "data");
  EXPECT_EQ(hooked->calls("read"), 4U);
  // It ends by a creation of the path ...
  EXPECT_TRUE(write("/new/any.name", "x"));
  EXPECT_EQ(read("/new/any.name"), "x");
  // ... of an ancestor by a rename onto it ...
  put_in_backend("/side/leaf", "renamed");
  EXPECT_EQ(read("/new/dir/leaf"), "ERROR not_found");
  ASSERT_TRUE(cached->rename(ctx, path_of("/side"), path_of("/new/dir")));
  EXPECT_EQ(read("/new/dir/leaf"), "renamed");
  // ... with its time, which polling does not lengthen ...
  EXPECT_EQ(read("/new/late"), "ERROR not_found");
  put_in_backend("/new/late", "behind");
  for (int i = 0; i < 9; ++i) {
    clock.advance_ms(100);
    EXPECT_EQ(read("/new/late"), "ERROR not_found");
  }
  clock.advance_ms(100);
  EXPECT_EQ(read("/new/late"), "behind");
  // ... and no other error is one.
  fail_operation("read", ErrorCode::io);
  EXPECT_EQ(read("/new/err"), "ERROR io");
  hooked->set_before({});
  put_in_backend("/new/err", "here");
  EXPECT_EQ(read("/new/err"), "here");
}

TEST_F(PolicyOfTheCache, ANegativeOnlyPathIsNotRememberedBesideItsCreation) {
  open_with({.negative_only_prefixes = {"/new"}, .negative_ttl_ms = 1'000});
  put_in_backend("/new/other", "1");
  bool once = true;
  hooked->set_after([&](std::string_view operation, PathView) -> std::optional<Error> {
    if (operation == "read" && std::exchange(once, false)) {
      EXPECT_TRUE(write("/new/f", "made meanwhile"));
    }
    return std::nullopt;
  });
  EXPECT_EQ(read("/new/f"), "ERROR not_found") << "it was asked for before";
  EXPECT_EQ(read("/new/f"), "made meanwhile");
}

TEST_F(PolicyOfTheCache, LimitsOfSizeHoldForFillsWritesAndListings) {
  open_with({.max_file_size_bytes = 10, .max_listing_bytes = 200});
  put_in_backend("/d/ten", std::string(10, 'x'));
  put_in_backend("/d/eleven", std::string(11, 'x'));
  EXPECT_TRUE(keeps_file("/d/ten"));
  EXPECT_FALSE(keeps_file("/d/eleven"));
  EXPECT_TRUE(write("/d/w10", std::string(10, 'w')));
  EXPECT_TRUE(write("/d/w11", std::string(11, 'w')));
  EXPECT_TRUE(provider_holds("/d/w10", ObjectKind::file));
  EXPECT_FALSE(provider_holds("/d/w11", ObjectKind::file));
  // What grows over the limit leaves nothing of its former self.
  EXPECT_TRUE(write("/d/w10", std::string(11, 'W')));
  EXPECT_FALSE(provider_holds("/d/w10", ObjectKind::file));
  EXPECT_EQ(read("/d/w10"), std::string(11, 'W'));
  put_in_backend("/one/f", "1");
  EXPECT_TRUE(keeps_listing("/one"));
  for (int i = 0; i < 20; ++i) put_in_backend(fmt::format("/many/some-longer-name-{}", i), "1");
  EXPECT_FALSE(keeps_listing("/many"));
}

TEST_F(PolicyOfTheCache, WritesOfWhatNobodyReadAreNotAdmitted) {
  open_with({.write_admission = WriteAdmission::read_before});
  EXPECT_TRUE(mkdir("/d"));
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(write(fmt::format("/d/import{}", i), "new"));
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(provider_holds(fmt::format("/d/import{}", i), ObjectKind::file));
  EXPECT_TRUE(write("/d/.abstract.md", "short"));
  EXPECT_TRUE(provider_holds("/d/.abstract.md", ObjectKind::file)) << "preferred names are";
  // Once it was read, its writes go through.
  EXPECT_EQ(read("/d/import1"), "new");
  EXPECT_TRUE(write("/d/import1", "newer"));
  EXPECT_TRUE(provider_holds("/d/import1", ObjectKind::file));
  EXPECT_EQ(read("/d/import1"), "newer");
}

// What is cached from another life, or was filled by a neighbour, is not known as read here: then the write erases it.
TEST_F(PolicyOfTheCache, AWriteThatIsNotAdmittedLeavesNoOlderValue) {
  open_with({.write_admission = WriteAdmission::read_before});
  CachedMountConfig neighbour;
  neighbour.mount_path = "/second";
  CachedFileSystem second(backend, domain, neighbour);
  put_in_backend("/d/f", "old");
  EXPECT_EQ(text_of(second.read(ctx, path_of("/d/f"), 0, 0)), "old");
  ASSERT_TRUE(provider_holds("/d/f", ObjectKind::file));
  EXPECT_TRUE(write("/d/f", "new"));
  EXPECT_FALSE(provider_holds("/d/f", ObjectKind::file));
  EXPECT_EQ(read("/d/f"), "new");
}

// One account's import and scan, however often it reads, beside the working set of another one.
TEST(ShareOfAnAccount, OneImportOrScanCannotEvictEverybody) {
  const auto kept_by_the_other = [](uint32_t share_percent) {
    auto backend = std::shared_ptr<FileSystem>(MemFileSystem::open({}).value());
    auto provider = std::shared_ptr<CacheProvider>(
        EmbeddedProvider::create({.dram_bytes = 4 << 20, .account_share_percent = share_percent}).value());
    auto domain = std::make_shared<CoherenceDomain>(CoherenceConfig{}, provider);
    CachedFileSystem cached(backend, domain, {});
    const Context ctx;
    const auto path = [](const char* account, int i) { return path_of(fmt::format("/{}/f{}", account, i)); };
    constexpr int kSet = 1'000;
    EXPECT_TRUE(backend->mkdir(ctx, path_of("/quiet"), kDefaultDirMode));
    EXPECT_TRUE(backend->mkdir(ctx, path_of("/loud"), kDefaultDirMode));
    const std::string data(1'000, 'd');
    for (int i = 0; i < kSet; ++i) {
      EXPECT_TRUE(cached.write(ctx, path("quiet", i), data, 0, WriteFlag::create));
      EXPECT_TRUE(cached.read(ctx, path("quiet", i), 0, 0));
    }
    for (int i = 0; i < 8'000; ++i) {
      EXPECT_TRUE(cached.write(ctx, path("loud", i), data, 0, WriteFlag::create));
      for (int times = 0; times < 3; ++times) EXPECT_TRUE(cached.read(ctx, path("loud", i), 0, 0));
    }
    const uint64_t before = cached.count(CacheCounter::file_hit);
    for (int i = 0; i < kSet; ++i) EXPECT_TRUE(cached.read(ctx, path("quiet", i), 0, 0));
    return static_cast<double>(cached.count(CacheCounter::file_hit) - before) / kSet;
  };
  EXPECT_GE(kept_by_the_other(50), 0.95);
  EXPECT_LT(kept_by_the_other(100), 0.5) << "without a share the test would show nothing";
}

}  // namespace
}  // namespace ragfs
