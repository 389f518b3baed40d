#include "ragfs/fs/agfs_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PathView at(std::string_view path) { return PathView::from_normal(path); }

class AgfsViewTest : public ::testing::Test {
 protected:
  AgfsViewTest() : mounts_(std::make_shared<MountTable>()), view_(mounts_, mounts_) {}

  std::shared_ptr<TestingFileSystem> mount(std::string_view path) {
    auto fs = std::make_shared<TestingFileSystem>();
    EXPECT_TRUE(mounts_->mount(at(path), fs));
    return fs;
  }
  std::vector<std::string> ls(std::string_view path) {
    const Result<std::vector<FileInfo>> entries = view_.read_dir(ctx_, at(path));
    if (!entries) return {entries.error().text()};
    std::vector<std::string> names;
    for (const FileInfo& info : *entries) names.push_back(info.name + (info.is_dir() ? "/" : ""));
    return names;
  }
  std::vector<std::string> grep(std::string_view path, GrepOptions options) {
    std::vector<std::string> files;
    const Result<void> done = view_.grep(ctx_, at(path), options, [&](GrepMatch&& match) {
      files.push_back(match.file);
      return true;
    });
    if (!done) files.push_back(done.error().text());
    return files;
  }

  std::shared_ptr<MountTable> mounts_;
  AgfsView view_;
  Context ctx_;
};

TEST_F(AgfsViewTest, TheRootAndAncestorsOfMountsExist) {
  EXPECT_THAT(ls("/"), IsEmpty());
  EXPECT_TRUE(view_.stat(ctx_, PathView())->is_dir());
  mount("/a/b/c")->put("/f", "x");
  mount("/a-z");
  mount("/d")->put("/g", "");
  EXPECT_THAT(ls("/"), ElementsAre("a/", "a-z/", "d/"));
  EXPECT_THAT(ls("/a"), ElementsAre("b/"));
  EXPECT_THAT(ls("/a/b"), ElementsAre("c/"));
  EXPECT_THAT(ls("/a/b/c"), ElementsAre("f"));
  EXPECT_EQ(view_.stat(ctx_, PathView())->name, "/");
  EXPECT_EQ(view_.stat(ctx_, at("/a/b"))->name, "b");
  EXPECT_EQ(view_.stat(ctx_, at("/a/b/c"))->name, "c");
  EXPECT_EQ(view_.stat(ctx_, at("/a/b"))->mtime_ns, view_.stat(ctx_, at("/a/b"))->mtime_ns);
  EXPECT_EQ(view_.stat(ctx_, at("/a/x")).error().text(), "not found: /a/x");
  EXPECT_EQ(view_.stat(ctx_, at("/d/none")).error().text(), "not found: /none");
  EXPECT_THAT(ls("/nope"), ElementsAre("not found: /nope"));
  EXPECT_TRUE(*view_.exists(ctx_, at("/a")));
  EXPECT_FALSE(*view_.exists(ctx_, at("/nope")));
}

TEST_F(AgfsViewTest, NestedMountsAreShownOnce) {
  const auto root = mount("/");
  root->put("/a/covered", "");
  root->put("/z", "");
  mount("/a")->put("/own", "");
  mount("/q/deep");
  EXPECT_THAT(ls("/"), ElementsAre("a/", "q/", "z"));
  EXPECT_THAT(ls("/a"), ElementsAre("own"));
  EXPECT_THAT(ls("/q"), ElementsAre("deep/"));
}

TEST_F(AgfsViewTest, TreeAndGlobCrossMounts) {
  mount("/a")->put("/x.md", "");
  mount("/b/c")->put("/d/y.md", "");
  const auto tree = view_.tree(ctx_, PathView(), {});
  std::vector<std::string> paths;
  for (const TreeEntry& entry : *tree) paths.push_back(entry.path);
  EXPECT_THAT(paths, ElementsAre("/a", "/a/x.md", "/b", "/b/c", "/b/c/d", "/b/c/d/y.md"));
  const auto page = view_.glob(ctx_, PathView(), "**/*.md", {});
  ASSERT_EQ(page->entries.size(), 2U);
  EXPECT_EQ(page->entries[1].path, "/b/c/d/y.md");
}

TEST_F(AgfsViewTest, GrepSearchesEachMountOnce) {
  const auto outer = mount("/a");
  outer->put("/f", "needle");
  outer->put("/in/covered", "needle");
  mount("/a/in")->put("/g", "needle\nneedle");
  mount("/b")->put("/h", "needle");
  EXPECT_THAT(grep("/", {.pattern = "needle", .recursive = true}), ElementsAre("a/f", "a/in/g", "a/in/g", "b/h"));
  EXPECT_THAT(grep("/a", {.pattern = "needle", .recursive = true}), ElementsAre("f", "in/g", "in/g"));
  EXPECT_THAT(grep("/", {.pattern = "needle", .recursive = true, .node_limit = 2}), ElementsAre("a/f", "a/in/g"));
  EXPECT_THAT(grep("/", {.pattern = "needle", .recursive = true, .level_limit = 2}), ElementsAre("a/f", "b/h"));
  EXPECT_THAT(grep("/", {.pattern = "needle", .recursive = true, .exclude_path = "/a"}), ElementsAre("b/h"));
  EXPECT_THAT(grep("/a", {.pattern = "needle"}), ElementsAre("f"));
  EXPECT_THAT(grep("/", {.pattern = "("}), ElementsAre(::testing::StartsWith("invalid operation")));
  EXPECT_THAT(grep("/a/in", {.pattern = "needle", .node_limit = 1}), ElementsAre("g"));
}

TEST_F(AgfsViewTest, TheRestGoesToTheMounts) {
  mount("/a");
  ASSERT_TRUE(view_.write(ctx_, at("/a/f"), "data", 0, WriteFlag::create));
  EXPECT_EQ(view_.read(ctx_, at("/a/f"), 0, 0)->view(), "data");
  EXPECT_EQ(view_.mkdir(ctx_, at("/new"), 0755).error().code, ErrorCode::mount_point_not_found);
  ASSERT_TRUE(view_.rename(ctx_, at("/a/f"), at("/a/g")));
  ASSERT_TRUE(view_.remove(ctx_, at("/a/g")));
}

}  // namespace
}  // namespace ragfs
