// The default methods of FileSystem, and through them tree, glob and grep.
#include "ragfs/fs/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/fs/glob.h"
#include "ragfs/fs/grep.h"
#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PathView at(std::string_view path) { return PathView::from_normal(path); }

// The tree that the original was run on (its grep, tree and glob answers are quoted below).
void put_known_tree(TestingFileSystem& fs) {
  fs.put("/g/a.md", "one needle\ntwo\nthree needle line end\n");
  fs.put("/g/b.txt", "needle in txt\r\nNEEDLE up\r\n");
  fs.put("/g/.hid.md", "needle hidden\n");
  fs.put("/g/sub/c.md", "ctx before\nneedle c\nctx after\n");
  fs.put("/g/sub/deep/d.md", "needle d");
  fs.put("/g/.hdir/e.md", "needle e\n");
  fs.put("/g/bin.md", std::string_view("\x00\x01needle bin\n", 13));
  fs.put("/g/uni.md", "\u4e2d\u6587 needle\n");
  fs.put("/g/bad.md", "\xff\xfe needle bad\n");
  fs.put("/g/ignored.log", "needle ignored\n");
  fs.put("/g/.gitignore", "*.log\n");
  fs.put("/g/Z.md", "zed needle\n");
}

std::vector<std::string> rel_paths(const Result<std::vector<TreeEntry>>& entries) {
  std::vector<std::string> paths;
  if (!entries) return {entries.error().text()};
  for (const TreeEntry& entry : *entries) paths.push_back(entry.rel_path);
  return paths;
}

std::vector<std::string> rel_paths(const Result<GlobPage>& page) {
  std::vector<std::string> paths;
  if (!page) return {page.error().text()};
  for (const GlobEntry& entry : page->entries) paths.push_back(entry.rel_path);
  return paths;
}

class KnownTree : public ::testing::Test {
 protected:
  KnownTree() { put_known_tree(fs_); }

  std::vector<std::string> tree(TreeOptions options, std::string_view path = "/g") {
    return rel_paths(fs_.tree(ctx_, at(path), options));
  }
  std::vector<std::string> glob(std::string_view pattern, GlobOptions options = {}, std::string_view path = "/g") {
    return rel_paths(fs_.glob(ctx_, at(path), pattern, options));
  }
  std::vector<std::string> grep(GrepOptions options, std::string_view path = "/g") {
    std::vector<std::string> lines;
    const Result<void> done = fs_.grep(ctx_, at(path), options, collect(lines));
    return done ? lines : std::vector<std::string>{done.error().text()};
  }
  std::vector<std::string> local_grep(GrepOptions options, std::string_view path = "/g") {
    std::vector<std::string> lines;
    const GrepSource source{
        {[&](PathView dir) { return fs_.read_dir(ctx_, dir); }, {}},
        [&](PathView file) { return fs_.stat(ctx_, file); },
        [&](PathView file, uint64_t offset, uint64_t size) { return fs_.read(ctx_, file, offset, size); }};
    const Result<void> done = walk_grep(ctx_, at(path), options, GrepStyle::local(), source, collect(lines));
    return done ? lines : std::vector<std::string>{done.error().text()};
  }
  static GrepSink collect(std::vector<std::string>& lines) {
    return [&lines](GrepMatch&& match) {
      lines.push_back(match.file + ":" + std::to_string(match.line) + ":" + match.content);
      return true;
    };
  }

  TestingFileSystem fs_;
  Context ctx_;
};

TEST_F(KnownTree, TreeListsDirectoriesFirst) {
  EXPECT_THAT(tree({.show_hidden = true}),
              ElementsAre(".hdir", ".hdir/e.md", "sub", "sub/deep", "sub/deep/d.md", "sub/c.md", ".gitignore",
                          ".hid.md", "a.md", "b.txt", "bad.md", "bin.md", "ignored.log", "uni.md", "Z.md"));
}

TEST_F(KnownTree, TreeDropsHiddenFilesAndKeepsHiddenDirectories) {
  EXPECT_THAT(tree({}), ElementsAre(".hdir", ".hdir/e.md", "sub", "sub/deep", "sub/deep/d.md", "sub/c.md", "a.md",
                                    "b.txt", "bad.md", "bin.md", "ignored.log", "uni.md", "Z.md"));
}

TEST_F(KnownTree, TreeLimits) {
  EXPECT_THAT(tree({.show_hidden = true, .node_limit = 3}), ElementsAre(".hdir", ".hdir/e.md", "sub"));
  EXPECT_THAT(tree({.show_hidden = true, .node_limit = 0}), IsEmpty());
  EXPECT_THAT(tree({.show_hidden = true, .level_limit = 0}), IsEmpty());
  EXPECT_THAT(tree({.level_limit = 1}),
              ElementsAre(".hdir", "sub", "a.md", "b.txt", "bad.md", "bin.md", "ignored.log", "uni.md", "Z.md"));
}

TEST_F(KnownTree, TreeErrorsAndPaths) {
  EXPECT_THAT(tree({}, "/nope"), ElementsAre("not found: /nope"));
  EXPECT_THAT(tree({}, "/g/a.md"), ElementsAre("not a directory: /g/a.md"));
  const Result<std::vector<TreeEntry>> root = fs_.tree(ctx_, PathView(), {.level_limit = 1});
  ASSERT_EQ(root->size(), 1U);
  EXPECT_EQ(root->front().path, "/g");
  EXPECT_EQ(root->front().rel_path, "g");
}

TEST_F(KnownTree, WalksLeaveOutInternalNamesBeforeTheyCount) {
  fs_.put("/g/.path.ovlock", "x");
  fs_.put("/g/.hdir/.exact.ovlock.e.md.0123456789abcdef", "needle");
  EXPECT_THAT(tree({.show_hidden = true, .node_limit = 2}), ElementsAre(".hdir", ".hdir/e.md"));
  EXPECT_THAT(glob(".*", {.show_hidden = true}), ElementsAre(".gitignore", ".hdir", ".hid.md"));
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true}, "/g/.hdir"), ElementsAre("e.md:1:needle e"));
}

TEST_F(KnownTree, AVanishedDirectoryIsEmptyAnUnreadableOneAnError) {
  fs_.set_hook([](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "read_dir" && path.name() == "sub") return Error{ErrorCode::not_found, "/g/sub"};
    return std::nullopt;
  });
  EXPECT_THAT(tree({.node_limit = 4}), ElementsAre(".hdir", ".hdir/e.md", "sub", "a.md"));
  fs_.set_hook([](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "read_dir" && path.name() == "sub") return Error{ErrorCode::io, "/g/sub"};
    return std::nullopt;
  });
  EXPECT_THAT(tree({}), ElementsAre("I/O error: /g/sub"));
  EXPECT_THAT(glob("**/*.md"), ElementsAre("I/O error: /g/sub"));
}

TEST_F(KnownTree, AWalkEndsAtTheDeadline) {
  ctx_.deadline = Deadline::at_ns(1);
  EXPECT_EQ(fs_.tree(ctx_, at("/g"), {}).error().code, ErrorCode::timeout);
  EXPECT_EQ(fs_.glob(ctx_, at("/g"), "*", {}).error().code, ErrorCode::timeout);
  EXPECT_EQ(fs_.grep(ctx_, at("/g"), {.pattern = "x"}, [](GrepMatch&&) { return true; }).error().code,
            ErrorCode::timeout);
}

TEST_F(KnownTree, UpcomingDirectoriesAreAnnouncedInOrder) {
  std::vector<std::string> events;
  const DirectorySource source{[&](PathView dir) {
                                 events.push_back("list " + std::string(dir.text()));
                                 return fs_.read_dir(ctx_, dir);
                               },
                               [&](std::span<const Path> paths) {
                                 for (const Path& path : paths) events.push_back("soon " + path.text());
                               }};
  ASSERT_TRUE(walk_tree(ctx_, at("/g"), {}, source));
  EXPECT_THAT(events, ElementsAre("list /g", "soon /g/.hdir", "soon /g/sub", "list /g/.hdir", "list /g/sub",
                                  "soon /g/sub/deep", "list /g/sub/deep"));
  events.clear();
  ASSERT_TRUE(walk_tree(ctx_, at("/g"), {.level_limit = 1}, source));
  EXPECT_THAT(events, ElementsAre("list /g"));
  events.clear();
  ASSERT_TRUE(walk_glob(ctx_, at("/g"), "sub/*.md", {}, source));
  EXPECT_THAT(events, ElementsAre("list /g", "soon /g/sub", "list /g/sub"));
}

TEST_F(KnownTree, GlobAnswersAsTheOriginal) {
  EXPECT_THAT(glob("*.md"), ElementsAre("Z.md", "a.md", "bad.md", "bin.md", "uni.md"));
  EXPECT_THAT(glob("**/*.md"),
              ElementsAre(".hdir/e.md", "Z.md", "a.md", "bad.md", "bin.md", "sub/c.md", "sub/deep/d.md", "uni.md"));
  EXPECT_THAT(glob("**", {.show_hidden = true}),
              ElementsAre(".gitignore", ".hdir", ".hdir/e.md", ".hid.md", "Z.md", "a.md", "b.txt", "bad.md", "bin.md",
                          "ignored.log", "sub", "sub/c.md", "sub/deep", "sub/deep/d.md", "uni.md"));
  EXPECT_THAT(glob("**/*.md", {.level_limit = 1}), ElementsAre("Z.md", "a.md", "bad.md", "bin.md", "uni.md"));
  EXPECT_THAT(glob("/"), IsEmpty());
  EXPECT_THAT(glob("{a,b}.md"), ElementsAre("a.md"));
  EXPECT_THAT(glob("*", {.page_size = 5}, "/nope"), ElementsAre("not found: /nope"));
  EXPECT_THAT(glob("*", {.page_size = 5}, "/g/a.md"), ElementsAre("not a directory: /g/a.md"));
}

TEST_F(KnownTree, GlobPagesFollowOneAnother) {
  std::vector<std::string> all;
  GlobOptions options{.page_size = 3};
  int pages = 0;
  while (true) {
    const Result<GlobPage> page = fs_.glob(ctx_, at("/g"), "**/*.md", options);
    ASSERT_TRUE(page);
    ++pages;
    for (const GlobEntry& entry : page->entries) all.push_back(entry.path);
    if (page->next_token.empty()) break;
    options.token = page->next_token;
  }
  EXPECT_EQ(pages, 3);
  EXPECT_THAT(all, ElementsAre("/g/.hdir/e.md", "/g/Z.md", "/g/a.md", "/g/bad.md", "/g/bin.md", "/g/sub/c.md",
                               "/g/sub/deep/d.md", "/g/uni.md"));
  // A page that ends exactly at the end has no token.
  EXPECT_EQ(fs_.glob(ctx_, at("/g"), "**/*.md", {.page_size = 8})->next_token, "");
  EXPECT_NE(fs_.glob(ctx_, at("/g"), "**/*.md", {.page_size = 7})->next_token, "");
}

TEST_F(KnownTree, GlobTokensAreBoundToTheirQuery) {
  const std::string token = fs_.glob(ctx_, at("/g"), "*.md", {.page_size = 2})->next_token;
  // hex(sha256("/g\0*.md\0" "0\0" "18446744073709551615")), worked out by another program.
  EXPECT_EQ(token, "9b9dc3fec361cd7d90b0e8faac23333010ac84b09d200e852c7378ee903fa8e6:2");
  const auto with = [](std::string_view text) { return GlobOptions{.page_size = 2, .token = std::string(text)}; };
  EXPECT_THAT(glob("*.md", with(token)), ElementsAre("bad.md", "bin.md"));
  const std::string mismatch = "invalid operation: continuation token scope mismatch";
  EXPECT_THAT(glob("*.txt", with(token)), ElementsAre(mismatch));
  EXPECT_THAT(glob("*.md", with("00:1")), ElementsAre(mismatch));
  EXPECT_THAT(glob("*.md", {.show_hidden = true, .page_size = 2, .token = token}), ElementsAre(mismatch));
  EXPECT_THAT(glob("*.md", {.page_size = 2, .level_limit = 3, .token = token}), ElementsAre(mismatch));
  EXPECT_THAT(glob("*.md", with(token), "/"), ElementsAre(mismatch));
  for (const char* bad : {"zz", "zz:", "zz:x", ":", "zz:-1", "zz:1 ", "zz:99999999999999999999"}) {
    EXPECT_THAT(glob("*.md", with(bad)), ElementsAre("invalid operation: invalid continuation token")) << bad;
  }
  const GlobScope scope{"/g", "*.md", false, std::nullopt};
  EXPECT_THAT(glob("*.md", with(make_glob_token(scope, 5))), IsEmpty());
  EXPECT_THAT(glob("*.md", with(make_glob_token(scope, 6))),
              ElementsAre("invalid operation: continuation token out of range"));
  EXPECT_EQ(parse_glob_token(scope, "").error().text(), "invalid operation: empty continuation token");
  EXPECT_THAT(glob("*.md", {.page_size = 0}), ElementsAre("invalid operation: page_size must be positive"));
}

TEST_F(KnownTree, GrepSearchesEverythingByDefault) {
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true}),
              ElementsAre(".hdir/e.md:1:needle e", ".hid.md:1:needle hidden", "Z.md:1:zed needle", "a.md:1:one needle",
                          "a.md:3:three needle line end", "b.txt:1:needle in txt", "bad.md:1:\uFFFD\uFFFD needle bad",
                          std::string("bin.md:1:\0\1needle bin", 21), "ignored.log:1:needle ignored",
                          "sub/c.md:2:needle c", "sub/deep/d.md:1:needle d", "uni.md:1:\u4e2d\u6587 needle"));
}

TEST_F(KnownTree, GrepInTheLocalStyleAnswersAsTheOriginal) {
  EXPECT_THAT(local_grep({.pattern = "needle"}),
              ElementsAre("Z.md:1:zed needle", "a.md:1:one needle", "a.md:3:three needle line end",
                          "b.txt:1:needle in txt", "uni.md:1:\u4e2d\u6587 needle"));
  EXPECT_THAT(local_grep({.pattern = "NEEDLE", .recursive = true, .case_insensitive = true}),
              ElementsAre("Z.md:1:zed needle", "a.md:1:one needle", "a.md:3:three needle line end",
                          "b.txt:1:needle in txt", "b.txt:2:NEEDLE up", "sub/c.md:2:needle c",
                          "sub/deep/d.md:1:needle d", "uni.md:1:\u4e2d\u6587 needle"));
  EXPECT_THAT(local_grep({.pattern = "", .recursive = true}),
              ElementsAre("Z.md:1:zed needle", "a.md:1:one needle", "a.md:2:two", "a.md:3:three needle line end",
                          "b.txt:1:needle in txt", "b.txt:2:NEEDLE up", "bad.md:1:\u6e20\u6565\u6c64\u2065\u6162\u0a64",
                          "sub/c.md:1:ctx before", "sub/c.md:2:needle c", "sub/c.md:3:ctx after",
                          "sub/deep/d.md:1:needle d", "uni.md:1:\u4e2d\u6587 needle"));
  EXPECT_EQ(local_grep({.pattern = "needle", .recursive = true, .level_limit = 1}).size(), 5U);
}

TEST_F(KnownTree, GrepLimitsAndExclusion) {
  EXPECT_THAT(grep({.pattern = "line end$", .recursive = true}), ElementsAre("a.md:3:three needle line end"));
  EXPECT_THAT(grep({.pattern = "needle"}, "/g/a.md"), ElementsAre(".:1:one needle", ".:3:three needle line end"));
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true, .node_limit = 2}),
              ElementsAre(".hdir/e.md:1:needle e", ".hid.md:1:needle hidden"));
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true, .node_limit = 0}), IsEmpty());
  // What is excluded does not count.
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true, .node_limit = 1, .exclude_path = "/g/.hdir"}),
              ElementsAre(".hid.md:1:needle hidden"));
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true, .exclude_path = "/g"}), IsEmpty());
  EXPECT_THAT(grep({.pattern = "needle c", .recursive = true, .exclude_path = "/g/su"}),
              ElementsAre("sub/c.md:2:needle c"));
  EXPECT_THAT(grep({.pattern = "needle [cde]", .recursive = true, .level_limit = 2}),
              ElementsAre(".hdir/e.md:1:needle e", "sub/c.md:2:needle c"));
  EXPECT_THAT(grep({.pattern = "needle", .level_limit = 0}), IsEmpty());
  EXPECT_THAT(grep({.pattern = "x"}, "/nope"), ElementsAre("not found: /nope"));
  EXPECT_THAT(grep({.pattern = "("}), ElementsAre(::testing::StartsWith("invalid operation: Invalid regex pattern: ")));
}

TEST_F(KnownTree, GrepGivesContextLines) {
  std::vector<GrepMatch> matches;
  const auto keep = [&](GrepMatch&& match) {
    matches.push_back(std::move(match));
    return true;
  };
  GrepOptions options{.pattern = "needle", .before_context = 1, .after_context = 1};
  ASSERT_TRUE(fs_.grep(ctx_, at("/g/a.md"), options, keep));
  ASSERT_EQ(matches.size(), 2U);
  EXPECT_THAT(matches[0].before, IsEmpty());
  ASSERT_EQ(matches[0].after.size(), 1U);
  EXPECT_EQ(matches[0].after[0].content, "two");
  EXPECT_EQ(matches[0].after[0].line, 2U);
  ASSERT_EQ(matches[1].before.size(), 1U);
  EXPECT_EQ(matches[1].before[0].content, "two");
  EXPECT_THAT(matches[1].after, IsEmpty());
  // The limit counts matches; a match at the limit still gets its lines.
  matches.clear();
  options.node_limit = 1;
  options.after_context = 5;
  ASSERT_TRUE(fs_.grep(ctx_, at("/g/a.md"), options, keep));
  ASSERT_EQ(matches.size(), 1U);
  EXPECT_EQ(matches[0].after.size(), 2U);
}

TEST_F(KnownTree, TheSinkMayStopTheSearch) {
  int seen = 0;
  fs_.forget_calls();
  ASSERT_TRUE(fs_.grep(ctx_, at("/g"), {.pattern = "needle", .recursive = true}, [&](GrepMatch&&) {
    ++seen;
    return false;
  }));
  EXPECT_EQ(seen, 1);
  EXPECT_THAT(fs_.calls(),
              ElementsAre("stat /g", "read_dir /g", "read /g/.gitignore", "read_dir /g/.hdir", "read /g/.hdir/e.md"));
}

TEST_F(KnownTree, AReadErrorEndsTheSearchAVanishedFileDoesNot) {
  ErrorCode code = ErrorCode::io;
  fs_.set_hook([&](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "read" && path.name() == "a.md") return Error{code, "/g/a.md"};
    return std::nullopt;
  });
  EXPECT_THAT(grep({.pattern = "needle", .recursive = true}), ElementsAre("I/O error: /g/a.md"));
  code = ErrorCode::not_found;
  EXPECT_EQ(grep({.pattern = "needle", .recursive = true}).size(), 10U);
}

TEST(Grep, LinesCrossReadsAndLongLinesAreCut) {
  TestingFileSystem fs;
  std::string big;
  big.assign(9'000'000, 'x');
  big[4'194'303] = '\n';  // the last byte of the first read
  big[8'000'000] = '\n';
  big += "end needle";
  fs.put("/big", big);
  fs.put("/long", std::string(17 << 20, 'y') + "needle\nneedle");
  std::vector<uint64_t> lines;
  const auto keep = [&](GrepMatch&& match) {
    lines.push_back(match.line);
    return true;
  };
  ASSERT_TRUE(fs.grep({}, at("/big"), {.pattern = "needle|^x"}, keep));
  EXPECT_THAT(lines, ElementsAre(1U, 2U, 3U));
  lines.clear();
  ASSERT_TRUE(fs.grep({}, at("/long"), {.pattern = "needle"}, keep));
  EXPECT_THAT(lines, ElementsAre(2U));
}

TEST(Grep, IgnoreFilesFollowGit) {
  TestingFileSystem fs;
  for (const char* path : {"/r/keep.log", "/r/a.log", "/r/build/x", "/r/d/build", "/r/d/only/x", "/r/d/e/top", "/r/top",
                           "/r/d/deep.tmp", "/r/d/back.tmp", "/r/{a}", "/r/later.txt"}) {
    fs.put(path, "needle\n");
  }
  fs.put("/r/.gitignore", "# comment\n*.log\n!keep.log\nbuild/\n/top\nd/only\n*.tmp\n{a}\n\n   \n[\n");
  fs.put("/r/d/.gitignore", "!back.tmp\r\n");
  fs.put("/r/.ignore", "later.txt\n");
  std::vector<std::string> files;
  const GrepSource source{
      {[&](PathView dir) { return fs.read_dir({}, dir); }, {}},
      [&](PathView file) { return fs.stat({}, file); },
      [&](PathView file, uint64_t offset, uint64_t size) { return fs.read({}, file, offset, size); }};
  ASSERT_TRUE(walk_grep({}, at("/r"), {.pattern = "needle", .recursive = true}, GrepStyle::local(), source,
                        [&](GrepMatch&& match) {
                          files.push_back(match.file);
                          return true;
                        }));
  EXPECT_THAT(files, ElementsAre("d/back.tmp", "d/build", "d/e/top", "keep.log"));
}

TEST(Grep, ABinaryFileIsLeftOutAndALateNulEndsIt) {
  TestingFileSystem fs;
  std::string late = "needle\n" + std::string(70'000, 'x') + "\nneedle\n";
  late += std::string_view("nee\0dle\nneedle\n", 15);
  fs.put("/late", late);
  fs.put("/early", std::string_view("needle\n\0", 8));
  const GrepSource source{
      {[&](PathView dir) { return fs.read_dir({}, dir); }, {}},
      [&](PathView file) { return fs.stat({}, file); },
      [&](PathView file, uint64_t offset, uint64_t size) { return fs.read({}, file, offset, size); }};
  std::vector<std::string> found;
  ASSERT_TRUE(walk_grep({}, PathView(), {.pattern = "nee"}, GrepStyle::local(), source, [&](GrepMatch&& match) {
    found.push_back(match.file + std::to_string(match.line));
    return true;
  }));
  EXPECT_THAT(found, ElementsAre("late1", "late3"));
}

TEST(FileSystemDefaults, EnsureParentDirsMakesWhatIsMissing) {
  TestingFileSystem fs;
  ASSERT_TRUE(fs.ensure_parent_dirs({}, at("/a/b/c/f"), kDefaultDirMode));
  EXPECT_TRUE(fs.stat({}, at("/a/b/c"))->is_dir());
  EXPECT_FALSE(*fs.exists({}, at("/a/b/c/f")));
  fs.forget_calls();
  ASSERT_TRUE(fs.ensure_parent_dirs({}, at("/a/b/c/g"), kDefaultDirMode));
  EXPECT_THAT(fs.calls(), ElementsAre("stat /a/b/c"));
  ASSERT_TRUE(fs.ensure_parent_dirs({}, at("/x"), kDefaultDirMode));
  ASSERT_TRUE(fs.ensure_parent_dirs({}, PathView(), kDefaultDirMode));
  fs.put("/file", "");
  EXPECT_EQ(fs.ensure_parent_dirs({}, at("/file/x"), kDefaultDirMode).error().text(), "not a directory: /file");
  EXPECT_EQ(fs.ensure_parent_dirs({}, at("/file/x/y"), kDefaultDirMode).error().code, ErrorCode::not_a_directory);
}

TEST(CaseA17, WritersToOneNewDeepDirectoryAllSucceed) {
  TestingFileSystem fs;
  std::atomic<int> failures{0};
  std::vector<std::thread> writers;
  for (int i = 0; i < 32; ++i) {
    writers.emplace_back([&, i] {
      const Path path = *Path::parse("/deep/er/and/deeper/" + std::to_string(i));
      if (!fs.ensure_parent_dirs({}, path, kDefaultDirMode)) ++failures;
      if (!fs.write({}, path, "x", 0, WriteFlag::create_new)) ++failures;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fs.read_dir({}, at("/deep/er/and/deeper"))->size(), 32U);
}

TEST(CaseA17, AParentRemovedMeanwhileIsMadeAgain) {
  TestingFileSystem fs;
  std::atomic<int> removals{0};
  fs.set_hook([&](std::string_view operation, PathView path) -> std::optional<Error> {
    // Somebody removes /a between its making and the making of /a/b, once.
    if (operation == "mkdir" && path.text() == "/a/b" && removals++ == 0) {
      EXPECT_TRUE(fs.remove({}, at("/a")));
    }
    return std::nullopt;
  });
  ASSERT_TRUE(fs.ensure_parent_dirs({}, at("/a/b/f"), kDefaultDirMode));
  EXPECT_TRUE(fs.stat({}, at("/a/b"))->is_dir());
}

TEST(FileSystemDefaults, ExistsTellsAbsenceFromFailure) {
  TestingFileSystem fs;
  fs.put("/f", "");
  EXPECT_TRUE(*fs.exists({}, at("/f")));
  EXPECT_FALSE(*fs.exists({}, at("/g")));
  fs.set_hook([](std::string_view, PathView) { return Error{ErrorCode::timeout, "slow"}; });
  EXPECT_EQ(fs.exists({}, at("/f")).error().code, ErrorCode::timeout);
}

TEST(FileSystemDefaults, CopyMakesParentsAndReplaces) {
  TestingFileSystem fs;
  fs.put("/a", "12345");
  const Result<WriteResult> copied = fs.copy({}, at("/a"), at("/new/dir/b"));
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->bytes, 5U);
  EXPECT_EQ(copied->meta.size, 5U);
  EXPECT_EQ(fs.read({}, at("/new/dir/b"), 0, 0)->view(), "12345");
  ASSERT_TRUE(fs.copy({}, at("/a"), at("/a")));
  EXPECT_EQ(fs.copy({}, at("/new"), at("/x")).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(fs.copy({}, at("/a"), at("/new")).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(fs.copy({}, at("/none"), at("/x")).error().code, ErrorCode::not_found);
}

TEST(FileSystemDefaults, ReplaceMovesFilesOnly) {
  TestingFileSystem fs;
  fs.put("/a", "new");
  fs.put("/b", "old");
  fs.put("/dir/x", "");
  ASSERT_TRUE(fs.replace({}, at("/a"), at("/b")));
  EXPECT_EQ(fs.read({}, at("/b"), 0, 0)->view(), "new");
  EXPECT_FALSE(*fs.exists({}, at("/a")));
  EXPECT_EQ(fs.replace({}, at("/dir"), at("/c")).error().code, ErrorCode::invalid_operation);
  EXPECT_EQ(fs.replace({}, at("/b"), at("/dir")).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(fs.replace({}, at("/a"), at("/c")).error().code, ErrorCode::not_found);
}

TEST(FileSystemDefaults, WhatABackendLacksSaysSo) {
  TestingFileSystem fs;
  fs.put("/f", "");
  EXPECT_EQ(fs.compare_and_write({}, at("/f"), "", "x").error().message, "compare_and_write is not supported: /f");
  EXPECT_EQ(fs.compare_and_remove({}, at("/f"), "").error().message, "compare_and_remove is not supported: /f");
  EXPECT_EQ(*fs.version({}, at("/f")), "");
  EXPECT_EQ(fs.version({}, PathView()).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(fs.read_internal_dir({}, PathView())->size(), 1U);
}

}  // namespace
}  // namespace ragfs
