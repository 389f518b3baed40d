// grep, copy, tree and glob through the cache: a backend's own way of doing them is kept, and no answer is another.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/hooked_fixture.h"
#include "tests/contract/backend_contract.h"

namespace ragfs {
namespace {

class FastPaths : public HookedFixture {
 protected:
  void SetUp() override {
    HookedFixture::SetUp();
    for (const auto& [path, content] : std::vector<std::pair<std::string, std::string>>{
             {"a.md", "needle\nother\nneedle again\n"},
             {".hidden.md", "needle hidden\n"},
             {"sub/b.md", "before\nneedle\nafter\n"},
             {"sub/ignored.log", "needle ignored\n"},
             {".gitignore", "*.log\n"},
             {"binary.bin", std::string("\0needle\n", 8)},
             {"utf16.md", std::string("\xff\xfen\0e\0e\0d\0l\0e\0\n\0", 16)}}) {
      const std::filesystem::path file = std::filesystem::path(dir_.path()) / path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << content;
    }
    hooked = std::make_shared<HookedFileSystem>(LocalFileSystem::open({.root_dir = dir_.path()}).value());
    backend = hooked;
    open_over({}, {});
  }
  std::vector<std::string> grep(FileSystem& fs, const GrepOptions& options, std::string_view path = "/") {
    std::vector<std::string> found;
    const auto done = fs.grep(ctx, path_of(path), options, [&](GrepMatch&& match) {
      found.push_back(match.file + ":" + std::to_string(match.line) + ":" + match.content);
      return true;
    });
    std::ranges::sort(found);
    if (!done) found.push_back(done.error().text());
    return found;
  }

  contract::TempDir dir_;
};

TEST_F(FastPaths, GrepIsTheBackendsOwnColdAndWarm) {
  const std::vector<GrepOptions> asked = {{.pattern = "needle", .recursive = true},
                                          {.pattern = "NEEDLE", .recursive = true, .case_insensitive = true},
                                          {.pattern = "needle"},
                                          {.pattern = "nothing like it", .recursive = true},
                                          {.pattern = "(", .recursive = true},
                                          {.pattern = "needle", .recursive = true, .level_limit = 1}};
  for (int pass = 0; pass < 2; ++pass) {
    for (const GrepOptions& options : asked) {
      EXPECT_EQ(grep(*cached, options), grep(*backend, options)) << options.pattern;
      EXPECT_EQ(grep(*cached, options, "/sub/b.md"), grep(*backend, options, "/sub/b.md")) << options.pattern;
      EXPECT_EQ(grep(*cached, options, "/nope"), grep(*backend, options, "/nope")) << options.pattern;
    }
    for (const char* path : {"/a.md", "/.hidden.md", "/sub/b.md", "/sub/ignored.log", "/utf16.md"}) (void)read(path);
    (void)list("/");
    (void)list("/sub");
  }
  EXPECT_EQ(grep(*cached, asked[0]).size(), 4U) << "hidden, ignored and binary files are left out, UTF-16 is read";
}

TEST_F(FastPaths, GrepSeesAWriteAtOnce) {
  EXPECT_EQ(read("/a.md"), "needle\nother\nneedle again\n");
  ASSERT_TRUE(write("/a.md", "fresh word\n"));
  EXPECT_EQ(grep(*cached, {.pattern = "fresh"}), std::vector<std::string>{"a.md:1:fresh word"});
}

TEST_F(FastPaths, CopyIsOneCallOfTheBackendAndItsTargetIsRead) {
  EXPECT_EQ(read("/sub/b.md"), "before\nneedle\nafter\n");
  hooked->forget_calls();
  ASSERT_TRUE(cached->copy(ctx, path_of("/a.md"), path_of("/sub/b.md")));
  EXPECT_EQ(hooked->calls("copy"), 1U);
  EXPECT_EQ(hooked->calls("read_file") + hooked->calls("read") + hooked->calls("write"), 0U)
      << "no bytes pass through the cache";
  EXPECT_EQ(read("/sub/b.md"), "needle\nother\nneedle again\n");
}

TEST_F(FastPaths, TreeAndGlobAnswerAsTheBackend) {
  for (int pass = 0; pass < 2; ++pass) {
    const auto mine = cached->tree(ctx, path_of("/"), {.show_hidden = true});
    const auto truth = backend->tree(ctx, path_of("/"), {.show_hidden = true});
    ASSERT_TRUE(mine && truth);
    ASSERT_EQ(mine->size(), truth->size());
    for (size_t i = 0; i < mine->size(); ++i) EXPECT_EQ((*mine)[i].rel_path, (*truth)[i].rel_path);
    const auto my_page = cached->glob(ctx, path_of("/"), "**/*.md", {.show_hidden = true});
    const auto true_page = backend->glob(ctx, path_of("/"), "**/*.md", {.show_hidden = true});
    ASSERT_TRUE(my_page && true_page);
    ASSERT_EQ(my_page->entries.size(), true_page->entries.size());
    for (size_t i = 0; i < my_page->entries.size(); ++i) {
      EXPECT_EQ(my_page->entries[i].rel_path, true_page->entries[i].rel_path);
    }
  }
}

}  // namespace
}  // namespace ragfs
