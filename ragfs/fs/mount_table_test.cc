#include "ragfs/fs/mount_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/pause_point.h"
#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PathView at(std::string_view path) { return PathView::from_normal(path); }

std::vector<std::string> names(const Result<std::vector<FileInfo>>& entries) {
  if (!entries) return {entries.error().text()};
  std::vector<std::string> found;
  for (const FileInfo& info : *entries) found.push_back(info.name);
  return found;
}

template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? "none" : result.error().text();
}

class MountTableTest : public ::testing::Test {
 protected:
  std::shared_ptr<TestingFileSystem> mount(std::string_view path) {
    auto fs = std::make_shared<TestingFileSystem>(std::string(path));
    EXPECT_TRUE(table_.mount(at(path), fs));
    return fs;
  }
  std::string read(std::string_view path) {
    const Result<Bytes> data = table_.read(ctx_, at(path), 0, 0);
    return data ? data->str() : data.error().text();
  }

  MountTable table_;
  Context ctx_;
};

TEST_F(MountTableTest, TheLongestMountAnswers) {
  mount("/a")->put("/f", "a");
  mount("/a/b")->put("/f", "ab");
  mount("/ab")->put("/f", "other");
  EXPECT_EQ(read("/a/f"), "a");
  EXPECT_EQ(read("/a/b/f"), "ab");
  EXPECT_EQ(read("/ab/f"), "other");
  EXPECT_EQ(read("/a/bc/f"), "not found: /bc/f");
  EXPECT_EQ(read("/abc"), "mount point not found: /abc");
  EXPECT_EQ(read("/"), "mount point not found: /");
  mount("/")->put("/f", "root");
  EXPECT_EQ(read("/f"), "root");
  EXPECT_EQ(read("/a/f"), "a");
  EXPECT_TRUE(table_.stat(ctx_, at("/a/b"))->is_dir());
}

TEST_F(MountTableTest, ManyMountsAreFoundAsFewAre) {
  std::vector<std::shared_ptr<TestingFileSystem>> kept;
  for (int i = 0; i < 40; ++i) {
    const std::string path = "/m" + std::to_string(i);
    mount(path)->put("/x/f", path);
    mount(path + "/deep/er")->put("/f", path + " deep");
  }
  EXPECT_EQ(read("/m7/x/f"), "/m7");
  EXPECT_EQ(read("/m7/deep/er/f"), "/m7 deep");
  EXPECT_EQ(read("/m39/x/f"), "/m39");
  EXPECT_EQ(read("/m7/deep/f"), "not found: /deep/f");
  EXPECT_EQ(read("/m"), "mount point not found: /m");
  EXPECT_EQ(read("/m40/deep/er/much/longer/than/any/mount"),
            "mount point not found: /m40/deep/er/much/longer/than/any/mount");
  EXPECT_EQ(read("/m7/deep/er/much/longer/than/any/mount"), "not found: /much/longer/than/any/mount");
  mount("/")->put("/z", "root");
  EXPECT_EQ(read("/z"), "root");
  EXPECT_EQ(table_.mounts().size(), 81U);
}

TEST_F(MountTableTest, MountAndUnmount) {
  mount("/b");
  const auto fs = mount("/a");
  EXPECT_EQ(error_of(table_.mount(at("/a"), std::make_shared<TestingFileSystem>())), "mount point already exists: /a");
  ASSERT_EQ(table_.mounts().size(), 2U);
  EXPECT_EQ(table_.mounts()[0].path.text(), "/a");
  EXPECT_EQ(table_.mounts()[0].file_system, fs);
  EXPECT_EQ(error_of(table_.unmount(at("/nope"))), "mount point not found: /nope");
  EXPECT_EQ(error_of(table_.unmount(at("/a/x"))), "mount point not found: /a/x");
  EXPECT_EQ(*table_.unmount(at("/a")), fs);
  EXPECT_EQ(error_of(table_.unmount(at("/a"))), "mount point not found: /a");
  EXPECT_EQ(error_of(table_.stat(ctx_, at("/a"))), "mount point not found: /a");
  EXPECT_EQ(table_.mount_of(at("/b/x"))->path.text(), "/b");
}

TEST_F(MountTableTest, OfTwoRacingMountsOneWins) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (table_.mount(at("/race"), std::make_shared<TestingFileSystem>())) ++won;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_TRUE(table_.unmount(at("/race")));
  }
}

TEST_F(MountTableTest, ListingsAreSortedAndWithoutInternalNames) {
  const auto fs = mount("/m");
  for (const char* path : {"/b", "/A", "/z/x", "/.path.ovlock", "/.exact.ovlock.b.1234567890abcdef", "/.hidden"}) {
    fs->put(path, "");
  }
  mount("/m/nested");
  EXPECT_THAT(names(table_.read_dir(ctx_, at("/m"))), ElementsAre("z", ".hidden", "A", "b"));
  EXPECT_EQ(names(table_.read_internal_dir(ctx_, at("/m"))).size(), 6U);
  EXPECT_THAT(names(table_.read_dir(ctx_, at("/m/none"))), ElementsAre("not found: /none"));
}

TEST_F(MountTableTest, RemovalsNameTheWholePath) {
  mount("/local");
  EXPECT_EQ(error_of(table_.remove(ctx_, at("/local/nope"))), "not found: /local/nope");
  EXPECT_EQ(error_of(table_.remove_all(ctx_, at("/local/nope"))), "not found: /local/nope");
  EXPECT_EQ(error_of(table_.truncate(ctx_, at("/local/nope"), 0)), "not found: /nope");
}

TEST_F(MountTableTest, NothingMovesAcrossMounts) {
  mount("/a")->put("/f", "x");
  mount("/b");
  EXPECT_EQ(error_of(table_.rename(ctx_, at("/a/f"), at("/b/f"))),
            "invalid operation: Cannot rename across different mount points");
  EXPECT_EQ(error_of(table_.replace(ctx_, at("/a/f"), at("/b/f"))),
            "invalid operation: Cannot replace across different mount points");
  EXPECT_EQ(error_of(table_.rename(ctx_, at("/a/f"), at("/none/f"))), "mount point not found: /none/f");
  EXPECT_EQ(error_of(table_.rename(ctx_, at("/a"), at("/a2"))), "mount point not found: /a2");
  ASSERT_TRUE(table_.rename(ctx_, at("/a/f"), at("/a/g")));
  ASSERT_TRUE(table_.replace(ctx_, at("/a/g"), at("/a/h")));
  EXPECT_EQ(read("/a/h"), "x");
}

TEST_F(MountTableTest, CopyWithinAMountSaysWhetherItCopied) {
  mount("/a")->put("/d/f", "x");
  mount("/b");
  const auto copy = [&](std::string_view from, std::string_view to) {
    return copy_within_mount(table_, table_, ctx_, at(from), at(to));
  };
  EXPECT_TRUE(*copy("/a/d/f", "/a/new/f"));
  EXPECT_EQ(read("/a/new/f"), "x");
  EXPECT_TRUE(*copy("/a/none", "/a/none"));
  EXPECT_FALSE(*copy("/a/d/f", "/b/f"));
  EXPECT_EQ(read("/b/f"), "not found: /f");
  EXPECT_EQ(error_of(copy("/a/nope", "/a/g")), "not found: /nope");
  EXPECT_EQ(error_of(copy("/a/d", "/a/g")), "is a directory: /d");
  EXPECT_EQ(error_of(copy("/a/d/f", "/none/g")), "mount point not found: /none/g");
  // The copy of the interface itself does cross mounts.
  ASSERT_TRUE(table_.copy(ctx_, at("/a/d/f"), at("/b/deep/f")));
  EXPECT_EQ(read("/b/deep/f"), "x");
}

TEST_F(MountTableTest, TreeGlobAndGrepSpeakOfTheWholeTree) {
  const auto fs = mount("/m");
  fs->put("/d/a.md", "needle");
  fs->put("/d/e/b.md", "needle");
  const auto tree = table_.tree(ctx_, at("/m/d"), {});
  ASSERT_EQ(tree->size(), 3U);
  EXPECT_EQ(tree->at(1).path, "/m/d/e/b.md");
  EXPECT_EQ(tree->at(1).rel_path, "e/b.md");
  const auto page = table_.glob(ctx_, at("/m"), "**/*.md", {.page_size = 1});
  ASSERT_EQ(page->entries.size(), 1U);
  EXPECT_EQ(page->entries[0].path, "/m/d/a.md");
  EXPECT_EQ(page->entries[0].rel_path, "d/a.md");
  const auto second = table_.glob(ctx_, at("/m"), "**/*.md", {.page_size = 1, .token = page->next_token});
  EXPECT_EQ(second->entries[0].path, "/m/d/e/b.md");
  const auto grep = [&](std::string exclude) {
    std::vector<std::string> files;
    const GrepOptions options{.pattern = "needle", .recursive = true, .exclude_path = std::move(exclude)};
    const Result<void> done = table_.grep(ctx_, at("/m/d"), options, [&](GrepMatch&& match) {
      files.push_back(match.file);
      return true;
    });
    if (!done) files.push_back(done.error().text());
    return files;
  };
  EXPECT_THAT(grep(""), ElementsAre("a.md", "e/b.md"));
  EXPECT_THAT(grep("/m/d/e/"), ElementsAre("a.md"));
  EXPECT_THAT(grep("/other/d/e"), ElementsAre("a.md", "e/b.md"));
  EXPECT_THAT(grep("/"), IsEmpty());
  EXPECT_THAT(grep("/../x"), ElementsAre(::testing::StartsWith("invalid path")));
  EXPECT_EQ(error_of(table_.tree(ctx_, PathView(), {})), "mount point not found: /");
  // With a root mount there is no prefix to add.
  mount("/")->put("/r.md", "");
  EXPECT_EQ(table_.glob(ctx_, PathView(), "*.md", {})->entries.at(0).path, "/r.md");
  EXPECT_EQ(table_.tree(ctx_, PathView(), {})->at(0).path, "/r.md");
}

TEST(CaseA13, NoSpellingLeavesTheMount) {
  MountTable table;
  const auto fs = std::make_shared<TestingFileSystem>();
  fs->put("/etc/passwd", "of the mount");
  ASSERT_TRUE(table.mount(at("/local"), fs));
  // What an interface does with a path before it reaches the table.
  const auto read = [&](std::string_view raw) -> std::string {
    const Result<PathArg> path = PathArg::parse(raw);
    if (!path) return std::string(kind_name(path.error().code));
    const Result<Bytes> data = table.read({}, *path, 0, 0);
    return data ? data->str() : data.error().text();
  };
  EXPECT_EQ(read("/local/../etc/passwd"), "invalid_path");
  EXPECT_EQ(read("/local/etc/../../etc/passwd"), "invalid_path");
  EXPECT_EQ(read(".."), "invalid_path");
  EXPECT_EQ(read(std::string_view("/local/a\0b", 10)), "invalid_path");
  EXPECT_EQ(read("/local//etc/passwd"), "of the mount");
  EXPECT_EQ(read("/local/./etc/./passwd"), "of the mount");
  EXPECT_EQ(read("local/etc/passwd/"), "of the mount");
  EXPECT_EQ(read("/local/...../x"), "not found: /...../x");
  // A name from a pattern or an exclusion is guarded alike.
  EXPECT_EQ(
      table.grep({}, at("/local"), {.pattern = "x", .exclude_path = "/local/../x"}, [](GrepMatch&&) { return true; })
          .error()
          .code,
      ErrorCode::invalid_path);
  EXPECT_THAT(table.glob({}, at("/local"), "../*", {})->entries, IsEmpty());
}

TEST(CaseA26, MountsWithNestedNamesDoNotSeeEachOther) {
  MountTable table;
  const auto outer = std::make_shared<TestingFileSystem>("outer");
  const auto inner = std::make_shared<TestingFileSystem>("inner");
  const auto sibling = std::make_shared<TestingFileSystem>("sibling");
  ASSERT_TRUE(table.mount(at("/team1"), outer));
  ASSERT_TRUE(table.mount(at("/team1/test"), inner));
  ASSERT_TRUE(table.mount(at("/team1-old"), sibling));
  outer->put("/f", "outer");
  inner->put("/f", "inner");
  sibling->put("/f", "sibling");
  EXPECT_THAT(names(table.read_dir({}, at("/team1"))), ElementsAre("f"));
  ASSERT_TRUE(table.remove_all({}, at("/team1")));
  EXPECT_THAT(names(table.read_dir({}, at("/team1"))), IsEmpty());
  EXPECT_EQ(table.read({}, at("/team1/test/f"), 0, 0)->view(), "inner");
  EXPECT_EQ(table.read({}, at("/team1-old/f"), 0, 0)->view(), "sibling");
  ASSERT_TRUE(table.remove_all({}, at("/team1/test")));
  EXPECT_EQ(table.read({}, at("/team1-old/f"), 0, 0)->view(), "sibling");
}

TEST(CaseA28, ACallInFlightEndsOnTheUnmountedFileSystem) {
  MountTable table;
  auto fs = std::make_shared<TestingFileSystem>("old");
  fs->put("/f", "old");
  ASSERT_TRUE(table.mount(at("/m"), fs));
  fs->set_hook([](std::string_view operation, PathView) -> std::optional<Error> {
    if (operation == "read") RAGFS_PAUSE_POINT("mount_table_test.read");
    return std::nullopt;
  });
  const std::weak_ptr<TestingFileSystem> watched = fs;
  fs.reset();
  auto paused = PausePoints::arm("mount_table_test.read");
  std::string seen;
  std::thread reader([&] { seen = table.read({}, at("/m/f"), 0, 0)->str(); });
  ASSERT_TRUE(paused->wait_for_arrival());
  ASSERT_TRUE(table.unmount(at("/m")));
  EXPECT_EQ(table.read({}, at("/m/f"), 0, 0).error().code, ErrorCode::mount_point_not_found);
  const auto replacement = std::make_shared<TestingFileSystem>("new");
  replacement->put("/f", "new");
  ASSERT_TRUE(table.mount(at("/m"), replacement));
  EXPECT_EQ(table.read({}, at("/m/f"), 0, 0)->view(), "new");
  EXPECT_FALSE(watched.expired());
  paused->release();
  reader.join();
  EXPECT_EQ(seen, "old");
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace ragfs
