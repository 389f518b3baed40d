// Several mounts over one provider: nothing of one is ever another's, and mounts of one tree see each other's writes.
#include <gtest/gtest.h>

#include <filesystem>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/hooked_fixture.h"
#include "tests/contract/backend_contract.h"

namespace ragfs {
namespace {

class MountsTest : public CacheFixture {
 protected:
  std::string read_of(CachedFileSystem& fs, std::string_view path) {
    return text_of(fs.read(ctx, path_of(path), 0, 0));
  }
  std::string list_of(CachedFileSystem& fs, std::string_view path) {
    std::string names;
    const auto entries = fs.read_dir(ctx, path_of(path));
    if (!entries) return "ERROR " + std::string(kind_name(entries.error().code));
    for (const FileInfo& entry : *entries) names += (names.empty() ? "" : " ") + entry.name;
    return names;
  }
  static bool write_to(CachedFileSystem& fs, std::string_view path, std::string_view data) {
    return fs.write(Context{}, path_of(path), data, 0, WriteFlag::create).has_value();
  }
};

TEST_F(MountsTest, TwoBackendsUnderOneProviderNeverMeet) {
  auto memory = MemFileSystem::open({});
  ASSERT_TRUE(memory);
  CachedFileSystem other(std::shared_ptr<FileSystem>(*std::move(memory)), domain, {.mount_path = "/other"});
  ASSERT_TRUE(write("/f", "mine"));
  ASSERT_TRUE(write_to(other, "/f", "other's"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(read("/f"), "mine");
    EXPECT_EQ(read_of(other, "/f"), "other's");
  }
  ASSERT_TRUE(other.remove_all(ctx, path_of("/")));
  EXPECT_EQ(read("/f"), "mine");
  EXPECT_EQ(read_of(other, "/f"), "ERROR not_found");
}

TEST_F(MountsTest, TwoMountsOfOneBackendSeeEachOthersWrites) {
  CachedFileSystem other(backend, domain, {.mount_path = "/again"});
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "one"));
  EXPECT_EQ(read_of(other, "/d/f"), "one");
  EXPECT_EQ(list_of(other, "/d"), "f");
  ASSERT_TRUE(write_to(other, "/d/f", "two"));
  ASSERT_TRUE(write_to(other, "/d/g", "new"));
  EXPECT_EQ(read("/d/f"), "two");
  EXPECT_EQ(list("/d"), "f g");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d"), path_of("/e")));
  EXPECT_EQ(read_of(other, "/d/f"), "ERROR not_found");
  EXPECT_EQ(read_of(other, "/e/f"), "two");
}

// A mount whose cache is off still tells the others what it changed.
TEST_F(MountsTest, AMountWithoutCacheStillRecords) {
  CachedFileSystem off(backend, domain, {.mount_path = "/off", .enabled = false});
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(read("/f"), "one");
  ASSERT_TRUE(write_to(off, "/f", "two"));
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(read_of(off, "/f"), "two");
  EXPECT_EQ(off.count(CacheCounter::file_hit), 0U);
}

// A view of a subdirectory of a backend, as a nested mount has it.
class SubtreeView {
 public:
  SubtreeView(const std::string& root, const std::string& below, const std::shared_ptr<CoherenceDomain>& domain)
      : outer_backend_(LocalFileSystem::open({.root_dir = root}).value()),
        inner_backend_(std::make_shared<HookedFileSystem>(LocalFileSystem::open({.root_dir = root + below}).value())) {
    // The inner root is normalised to the outer identity; its paths get the prefix.
    inner_backend_->mutable_traits().identity = outer_backend_->traits().identity;
    outer = std::make_unique<CachedFileSystem>(outer_backend_, domain, CachedMountConfig{.mount_path = "/outer"});
    inner = std::make_unique<CachedFileSystem>(inner_backend_, domain,
                                               CachedMountConfig{.mount_path = "/inner", .identity_prefix = below});
  }

 private:
  std::shared_ptr<FileSystem> outer_backend_;
  std::shared_ptr<HookedFileSystem> inner_backend_;

 public:
  std::unique_ptr<CachedFileSystem> outer;
  std::unique_ptr<CachedFileSystem> inner;
};

TEST_F(MountsTest, NestedMountsOfOneTreeSeeEachOther) {
  contract::TempDir dir;
  std::filesystem::create_directories(dir.path() + "/a/b/sub");
  SubtreeView view(dir.path(), "/a/b", domain);
  ASSERT_TRUE(write_to(*view.outer, "/a/b/f", "outer wrote"));
  EXPECT_EQ(read_of(*view.inner, "/f"), "outer wrote");
  EXPECT_EQ(list_of(*view.outer, "/a/b"), "sub f");
  EXPECT_EQ(list_of(*view.inner, "/"), "sub f");
  ASSERT_TRUE(write_to(*view.inner, "/f", "inner wrote"));
  EXPECT_EQ(read_of(*view.outer, "/a/b/f"), "inner wrote");
  ASSERT_TRUE(write_to(*view.inner, "/g", "x"));
  EXPECT_EQ(list_of(*view.outer, "/a/b"), "sub f g");
  ASSERT_TRUE(view.inner->rename(ctx, path_of("/g"), path_of("/sub/g")));
  EXPECT_EQ(list_of(*view.outer, "/a/b"), "sub f");
  EXPECT_EQ(list_of(*view.outer, "/a/b/sub"), "g");
  ASSERT_TRUE(view.outer->remove_all(ctx, path_of("/a/b/sub")));
  EXPECT_EQ(list_of(*view.inner, "/"), "f");
  EXPECT_EQ(read_of(*view.inner, "/sub/g"), "ERROR not_found");
}

// The copy of a file that was put there through the outer mount is a hit through the inner one: one key for one file.
TEST_F(MountsTest, NestedMountsShareTheirObjects) {
  contract::TempDir dir;
  std::filesystem::create_directories(dir.path() + "/a");
  SubtreeView view(dir.path(), "/a", domain);
  ASSERT_TRUE(write_to(*view.outer, "/a/f", "shared"));
  EXPECT_EQ(read_of(*view.inner, "/f"), "shared");
  EXPECT_EQ(view.inner->count(CacheCounter::file_hit), 1U);
}

// copy() makes missing parents. One that is removed after copy() found it there is recorded when copy() makes it again.
TEST_F(MountsTest, AParentThatIsRemovedWhileACopyRunsIsListedAfterwards) {
  for (const bool ensure : {false, true}) {
    open({}, {});
    put_in_backend("/source", "x");
    ASSERT_TRUE(mkdir("/d"));
    EXPECT_EQ(list("/"), "d source");
    auto armed = PausePoints::arm("mutation.before_backend");
    std::jthread copier([&] {
      if (ensure) {
        EXPECT_TRUE(cached->ensure_parent_dirs(ctx, path_of("/d/f"), kDefaultDirMode));
      } else {
        EXPECT_TRUE(cached->copy(ctx, path_of("/source"), path_of("/d/f")));
      }
    });
    ASSERT_TRUE(armed->wait_for_arrival());
    Context hurried;
    hurried.deadline = Deadline::in_ms(50);
    (void)cached->remove(hurried, path_of("/d"));
    (void)list("/");
    armed->release();
    copier.join();
    PausePoints::clear();
    EXPECT_EQ(list("/"), "d source") << ensure;
    EXPECT_EQ(stat_size("/d"), "0") << ensure;
  }
}

}  // namespace
}  // namespace ragfs
