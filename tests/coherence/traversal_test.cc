// tree, glob and grep over the cache give what the backend's own give, cold, warm and after mutations; and what they
// leave in the cache.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "ragfs/backends/local/local_file_system.h"
#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

template <typename T>
std::string error_text(const Result<T>& result) {
  return "ERROR " + std::string(kind_name(result.error().code)) + " " + result.error().message;
}

std::string tree_text(const Result<std::vector<TreeEntry>>& entries) {
  if (!entries) return error_text(entries);
  std::string text;
  for (const TreeEntry& entry : *entries) {
    text += fmt::format("{} {} {} {} {}\n", entry.path, entry.rel_path, entry.info.size, entry.info.mode,
                        static_cast<int>(entry.info.kind));
  }
  return text;
}

std::string glob_text(FileSystem& fs, PathView path, std::string_view pattern, GlobOptions options) {
  std::string text;
  while (true) {
    const auto page = fs.glob(Context(), path, pattern, options);
    if (!page) return text + error_text(page);
    for (const GlobEntry& entry : page->entries) text += fmt::format("{} {}\n", entry.path, entry.rel_path);
    if (page->next_token.empty()) return text;
    text += "-- next page\n";
    options.token = page->next_token;
  }
}

std::string grep_text(FileSystem& fs, PathView path, const GrepOptions& options) {
  std::string text;
  const auto done = fs.grep(Context(), path, options, [&](GrepMatch&& match) {
    text += fmt::format("{}:{}:{}\n", match.file, match.line, match.content);
    for (const auto* lines : {&match.before, &match.after}) {
      for (const GrepLine& line : *lines) text += fmt::format("  {} {}\n", line.line, line.content);
    }
    return true;
  });
  return done ? text : text + error_text(done);
}

class CachedTraversal : public HookedFixture {
 protected:
  void TearDown() override {
    HookedFixture::TearDown();
    if (!root.empty()) std::filesystem::remove_all(root);
  }
  static CachedMountConfig over_the_cache() {
    CachedMountConfig mount;
    mount.cached_grep = true;
    return mount;
  }
  void open_over_directory(const CachedMountConfig& mount) {
    root = (std::filesystem::temp_directory_path() / "ragfs_traversal_XXXXXX").string();
    ASSERT_NE(::mkdtemp(root.data()), nullptr);
    auto local = LocalFileSystem::open({.root_dir = root});
    ASSERT_TRUE(local) << local.error().text();
    hooked = std::make_shared<HookedFileSystem>(std::shared_ptr<FileSystem>(*std::move(local)));
    backend = hooked;
    provider = std::make_shared<ScriptedProvider>();
    open_over({}, mount);
  }

  // One random change through the cache: names that walks treat in their own ways are as frequent as others.
  void change() {
    static constexpr const char* kNames[] = {"a.md",    "b.txt",        ".hidden",    ".gitignore",
                                             ".ignore", ".abstract.md", "binary.dat", "utf16.md",
                                             "Z.md",    "z.md",         "empty"};
    static constexpr const char* kContents[] = {"needle\nother\nNeedle again\n", "nothing here\n",
                                                "*.txt\n/sub0\n!b.txt\n", "", "needle without an end"};
    const auto directory = [&] {
      std::string path;
      for (size_t depth = random() % 4; depth > 0; --depth) {
        path += fmt::format("/{}sub{}", random() % 8 == 0 ? "." : "", random() % 3);
      }
      return path;
    };
    const std::string path = directory() + "/" + kNames[random() % std::size(kNames)];
    const Path at = path_of(path);
    switch (random() % 10) {
      case 0: (void)cached->remove(ctx, at); return;
      case 1: (void)cached->rename(ctx, path_of(directory().empty() ? "/sub0" : directory()), path_of("/sub1")); return;
      case 2: (void)cached->mkdir(ctx, path_of(directory() + "/new"), kDefaultDirMode); return;
      default: break;
    }
    (void)cached->ensure_parent_dirs(ctx, at, kDefaultDirMode);
    std::string data = kContents[random() % std::size(kContents)];
    if (path.ends_with(".dat")) data = std::string("needle\0needle\n", 14) + data;
    if (path.ends_with("utf16.md")) data = std::string("\xff\xfen\0e\0e\0d\0l\0e\0\n\0", 16);
    (void)cached->write(ctx, at, data, 0, WriteFlag::create);
  }
  void expect_same() {
    for (const char* path : {"/", "/sub0", "/sub1/sub2", "/a.md", "/gone"}) {
      SCOPED_TRACE(path);
      const Path at = path_of(path);
      TreeOptions tree;
      tree.show_hidden = random() % 2 == 0;
      if (random() % 2 == 0) tree.level_limit = random() % 3;
      if (random() % 2 == 0) tree.node_limit = random() % 20;
      EXPECT_EQ(tree_text(cached->tree(ctx, at, tree)), tree_text(backend->tree(ctx, at, tree)));
      GlobOptions glob;
      glob.show_hidden = random() % 2 == 0;
      if (random() % 2 == 0) glob.page_size = 1 + random() % 5;
      for (const char* pattern : {"**/*.md", "*", "**/sub*/*", "[az].md"}) {
        EXPECT_EQ(glob_text(*cached, at, pattern, glob), glob_text(*backend, at, pattern, glob)) << pattern;
      }
      GrepOptions grep;
      grep.pattern = random() % 8 == 0 ? "(" : "needle";
      grep.recursive = random() % 4 != 0;
      grep.case_insensitive = random() % 2 == 0;
      grep.before_context = random() % 2;
      grep.after_context = random() % 2;
      if (random() % 3 == 0) grep.node_limit = random() % 6;
      if (random() % 3 == 0) grep.exclude_path = "/sub1";
      EXPECT_EQ(grep_text(*cached, at, grep), grep_text(*backend, at, grep));
    }
  }
  void be_random() {
    const char* given = std::getenv("RAGFS_STRESS_SEED");
    const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    RecordProperty("seed", std::to_string(seed));
    SCOPED_TRACE(fmt::format("RAGFS_STRESS_SEED={}", seed));
    random.seed(seed);
    constexpr int kRounds = 60;
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      for (int i = 0; i < 6; ++i) change();
      expect_same();  // partly cached
      expect_same();  // cached
    }
  }

  std::string root;
  std::mt19937_64 random;
};

TEST_F(CachedTraversal, OverALocalDirectoryItGivesWhatTheBackendGives) {
  open_over_directory(over_the_cache());
  be_random();
}

TEST_F(CachedTraversal, OverMemfsItGivesWhatTheBackendGives) {
  open_hooked({}, over_the_cache());
  be_random();
}

TEST_F(CachedTraversal, LinksAndFilesThatMayNotBeReadAreTreatedAsByTheBackend) {
  open_over_directory(over_the_cache());
  ASSERT_TRUE(cached->ensure_parent_dirs(ctx, path_of("/d/sub/x"), kDefaultDirMode));
  for (const char* file : {"/d/a.md", "/d/sub/b.md", "/d/closed.md"}) ASSERT_TRUE(write(file, "needle\n"));
  std::filesystem::create_symlink("a.md", root + "/d/link.md");
  std::filesystem::create_directory_symlink("sub", root + "/d/linked");
  std::filesystem::permissions(root + "/d/closed.md", std::filesystem::perms::none);
  for (int i = 0; i < 2; ++i) expect_same();
  const GrepOptions grep{.pattern = "needle", .recursive = true};
  for (const char* path : {"/d", "/d/link.md", "/d/linked"}) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(grep_text(*cached, path_of(path), grep), grep_text(*backend, path_of(path), grep)) << path;
    }
  }
}

TEST_F(CachedTraversal, AWarmGrepAsksTheBackendForNothing) {
  open_over_directory(over_the_cache());
  for (int i = 0; i < 20; ++i) put_in_backend(fmt::format("/acct/r/d{}/f.md", i), "needle\n");
  const GrepOptions grep{.pattern = "needle", .recursive = true};
  (void)list("/acct");  // tells what /acct/r is
  const std::string cold = grep_text(*cached, path_of("/acct/r"), grep);
  EXPECT_EQ(std::ranges::count(cold, '\n'), 20);
  hooked->forget_calls();
  EXPECT_EQ(grep_text(*cached, path_of("/acct/r"), grep), cold);
  for (const char* operation : {"read", "read_file", "read_dir", "stat", "grep"})
    EXPECT_EQ(hooked->calls(operation), 0U);
}

TEST_F(CachedTraversal, TheOptionsOfAMountDecideWhoWalks) {
  CachedMountConfig mount;
  mount.cached_walks = false;
  open_over_directory(mount);
  put_in_backend("/d/f.md", "needle\n");
  hooked->forget_calls();
  (void)cached->tree(ctx, path_of("/d"), {});
  (void)cached->glob(ctx, path_of("/d"), "*", {});
  (void)grep_text(*cached, path_of("/d"), {.pattern = "needle"});
  for (const char* operation : {"tree", "glob", "grep"}) EXPECT_EQ(hooked->calls(operation), 1U) << operation;
  open_over({}, over_the_cache());
  hooked->forget_calls();
  (void)cached->tree(ctx, path_of("/d"), {});
  (void)cached->glob(ctx, path_of("/d"), "*", {});
  (void)grep_text(*cached, path_of("/d"), {.pattern = "needle"});
  for (const char* operation : {"tree", "glob", "grep"}) EXPECT_EQ(hooked->calls(operation), 0U) << operation;
}

// What agents read again and again stays, though a grep over the cache reads twenty times what fits.
TEST_F(CachedTraversal, AScanDoesNotPushTheWorkingSetOut) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead ? "with reading ahead" : "without");
    open_hooked({}, over_the_cache());
    CoherenceConfig config;
    config.prefetch.enabled = ahead;
    domain = std::make_shared<CoherenceDomain>(config, *EmbeddedProvider::create({.dram_bytes = 2 << 20}));
    cached = std::make_shared<CachedFileSystem>(backend, domain, over_the_cache());
    constexpr int kWorkingSet = 100;
    for (int i = 0; i < kWorkingSet; ++i) put_in_backend(fmt::format("/acct/work/f{}.md", i), std::string(2'000, 'w'));
    for (int i = 0; i < 10'000; ++i) {
      put_in_backend(fmt::format("/acct/scan/d{}/f{}.md", i / 100, i), std::string(4'000, 's'));
    }
    const auto use = [&] {
      for (int i = 0; i < kWorkingSet; ++i) (void)read(fmt::format("/acct/work/f{}.md", i));
    };
    for (int round = 0; round < 5; ++round) use();
    const uint64_t misses = cached->count(CacheCounter::file_miss);
    (void)grep_text(*cached, path_of("/acct/scan"), {.pattern = "needle", .recursive = true});
    EXPECT_GT(cached->count(CacheCounter::file_miss), misses + 9'000) << "the scan does not fit";
    const uint64_t before = cached->count(CacheCounter::file_miss);
    use();
    EXPECT_LE(cached->count(CacheCounter::file_miss) - before, kWorkingSet / 20);
    EXPECT_TRUE(cached->stop_prefetch(Deadline::in_ms(20'000)));
  }
}

}  // namespace
}  // namespace ragfs
