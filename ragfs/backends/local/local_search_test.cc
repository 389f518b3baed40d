// grep, tree and glob of localfs on one fixed tree, with the answers that RAGFS 0.5.2 gave for it.
#include <gmock/gmock.h>

#include "ragfs/backends/local/local_test_tree.h"

namespace ragfs {
namespace {

namespace host = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class LocalSearch : public LocalTestTree {
 protected:
  void SetUp() override {
    LocalTestTree::SetUp();
    const std::initializer_list<std::pair<const char*, std::string>> tree = {
        {"a.md", "one needle\ntwo\nthree needle line end\n"},
        {"b.txt", "needle in txt\r\nNEEDLE up\r\n"},
        {".hid.md", "needle hidden\n"},
        {"sub/c.md", "ctx before\nneedle c\nctx after\n"},
        {"sub/deep/d.md", "needle d"},
        {".hdir/e.md", "needle e\n"},
        {"bin.md", std::string("\0\1needle bin\n", 13)},
        {"uni.md", "\xe4\xb8\xad\xe6\x96\x87 needle\n"},
        {"bad.md", "\xff\xfe needle bad\n"},
        {"ignored.log", "needle ignored\n"},
        {".gitignore", "*.log\n"},
        {"Z.md", "zed needle\n"},
    };
    for (const auto& [path, content] : tree) {
      host::create_directories((root / "g" / path).parent_path());
      host_write(root / "g" / path, content);
    }
  }
  // "file:line:content" of each match; the kind of the error alone when there is one.
  std::vector<std::string> grep(std::string_view path, GrepOptions options) {
    std::vector<std::string> found;
    auto done = fs->grep(ctx, P(path), options, [&](GrepMatch&& match) {
      found.push_back(match.file + ":" + std::to_string(match.line) + ":" + match.content);
      return true;
    });
    if (!done) return {kind(done)};
    return found;
  }
  std::vector<std::string> tree(const TreeOptions& options) {
    std::vector<std::string> found;
    const auto entries = fs->tree(ctx, P("/g"), options);
    if (!entries) return {kind(entries)};
    for (const TreeEntry& entry : *entries) found.push_back(entry.rel_path);
    return found;
  }
  std::vector<std::string> glob(std::string_view pattern, const GlobOptions& options) {
    std::vector<std::string> found;
    const auto page = fs->glob(ctx, P("/g"), pattern, options);
    if (!page) return {kind(page)};
    for (const GlobEntry& entry : page->entries) found.push_back(entry.rel_path);
    return found;
  }
};

TEST_F(LocalSearch, GrepLeavesOutWhatRgLeavesOut) {
  EXPECT_THAT(grep("/g", {.pattern = "needle"}),
              UnorderedElementsAre("Z.md:1:zed needle", "a.md:1:one needle", "a.md:3:three needle line end",
                                   "b.txt:1:needle in txt", "uni.md:1:\xe4\xb8\xad\xe6\x96\x87 needle"));
  EXPECT_THAT(grep("/g", {.pattern = "NEEDLE", .recursive = true, .case_insensitive = true}),
              UnorderedElementsAre("Z.md:1:zed needle", "a.md:1:one needle", "a.md:3:three needle line end",
                                   "b.txt:1:needle in txt", "b.txt:2:NEEDLE up", "sub/c.md:2:needle c",
                                   "sub/deep/d.md:1:needle d", "uni.md:1:\xe4\xb8\xad\xe6\x96\x87 needle"));
  EXPECT_THAT(grep("/g/a.md", {.pattern = "needle"}), ElementsAre(".:1:one needle", ".:3:three needle line end"));
  EXPECT_THAT(grep("/g", {.pattern = "line end$", .recursive = true}), ElementsAre("a.md:3:three needle line end"));
  EXPECT_EQ(grep("/g", {.pattern = "", .recursive = true}).size(), 12U) << "the file with a UTF-16 mark is decoded";
  EXPECT_THAT(grep("/nope", {.pattern = "x"}), ElementsAre("not_found"));
  EXPECT_THAT(grep("/g", {.pattern = "("}), ElementsAre("invalid_operation"));
}

TEST_F(LocalSearch, GrepKeepsItsLimits) {
  EXPECT_EQ(grep("/g", {.pattern = "needle", .recursive = true, .node_limit = 3}).size(), 3U);
  EXPECT_EQ(grep("/g", {.pattern = "needle", .recursive = true, .node_limit = 0}).size(), 0U);
  EXPECT_EQ(grep("/g", {.pattern = "needle", .recursive = true, .level_limit = 1}).size(), 5U);
  EXPECT_EQ(grep("/g", {.pattern = "needle", .recursive = true, .exclude_path = "/g/sub"}).size(), 5U);
}

TEST_F(LocalSearch, GrepPassesUnreadableFilesAndReportsBrokenOnes) {
  files.add(Fault("openat2", EACCES).on("g/a.md").times(-1));
  EXPECT_EQ(grep("/g", {.pattern = "needle", .recursive = true}).size(), 5U);
  files.clear();
  files.add(Fault("pread", EIO).on("g/a.md").times(-1));
  EXPECT_THAT(grep("/g", {.pattern = "needle", .recursive = true}), ::testing::Contains("io"));
}

TEST_F(LocalSearch, TreeKeepsHiddenDirectories) {
  EXPECT_THAT(tree({.show_hidden = true}),
              ElementsAre(".hdir", ".hdir/e.md", "sub", "sub/deep", "sub/deep/d.md", "sub/c.md", ".gitignore",
                          ".hid.md", "a.md", "b.txt", "bad.md", "bin.md", "ignored.log", "uni.md", "Z.md"));
  EXPECT_THAT(tree({}), ElementsAre(".hdir", ".hdir/e.md", "sub", "sub/deep", "sub/deep/d.md", "sub/c.md", "a.md",
                                    "b.txt", "bad.md", "bin.md", "ignored.log", "uni.md", "Z.md"));
  EXPECT_THAT(tree({.show_hidden = true, .node_limit = 3}), ElementsAre(".hdir", ".hdir/e.md", "sub"));
  EXPECT_THAT(tree({.show_hidden = true, .level_limit = 1}),
              ElementsAre(".hdir", "sub", ".gitignore", ".hid.md", "a.md", "b.txt", "bad.md", "bin.md", "ignored.log",
                          "uni.md", "Z.md"));
}

TEST_F(LocalSearch, GlobIsSortedByPathAndNamesDirectories) {
  EXPECT_THAT(glob("*.md", {}), ElementsAre("Z.md", "a.md", "bad.md", "bin.md", "uni.md"));
  EXPECT_THAT(glob("**", {.show_hidden = true}),
              ElementsAre(".gitignore", ".hdir", ".hdir/e.md", ".hid.md", "Z.md", "a.md", "b.txt", "bad.md", "bin.md",
                          "ignored.log", "sub", "sub/c.md", "sub/deep", "sub/deep/d.md", "uni.md"));
  EXPECT_THAT(glob("**/*.md", {}),
              ElementsAre(".hdir/e.md", "Z.md", "a.md", "bad.md", "bin.md", "sub/c.md", "sub/deep/d.md", "uni.md"));
  EXPECT_THAT(glob("**/*.md", {.level_limit = 1}), ElementsAre("Z.md", "a.md", "bad.md", "bin.md", "uni.md"));
  EXPECT_THAT(glob("{a,b}.md", {}), ElementsAre("a.md"));
  const auto first = fs->glob(ctx, P("/g"), "**/*.md", {.page_size = 2});
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(glob("**/*.md", {.page_size = 2, .token = first->next_token}), ElementsAre("a.md", "bad.md"));
  EXPECT_EQ(kind(fs->glob(ctx, P("/nope"), "*", {})), "not_found");
  EXPECT_EQ(kind(fs->glob(ctx, P("/g/a.md"), "*", {})), "not_a_directory");
}

}  // namespace
}  // namespace ragfs
