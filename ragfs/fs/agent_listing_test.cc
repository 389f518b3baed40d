#include "ragfs/fs/agent_listing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ragfs/fs/agent_context.h"
#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

class AgentListing : public ::testing::Test {
 protected:
  // "rel_path=abstract" of each entry, joined by spaces; a directory without one ends in '/'.
  std::string show(std::string_view directory, const AgentListingOptions& options = {}) {
    const auto entries = list_with_abstracts(fs, ctx, PathView::from_normal(directory), options);
    if (!entries) return "ERROR " + std::string(kind_name(entries.error().code));
    std::string out;
    for (const AgentEntry& entry : *entries) {
      out += (out.empty() ? "" : " ") + entry.rel_path + (entry.info.is_dir() ? "/" : "");
      if (entry.abstract) out += "=" + entry.abstract->str();
      if (entry.error) out += "!" + std::string(kind_name(entry.error->code));
    }
    return out;
  }

  TestingFileSystem fs;
  Context ctx;
};

TEST_F(AgentListing, ShowsTheAbstractsOfDirectories) {
  fs.put("/r/one/.abstract.md", "first");
  fs.put("/r/one/page.md", "1");
  fs.put("/r/two/page.md", "2");
  fs.put("/r/page.md", "3");
  fs.put("/r/.abstract.md", "of r itself");
  EXPECT_EQ(show("/r"), "one/=first two/ page.md");
  EXPECT_EQ(show("/r", {.show_hidden = true}), "one/=first two/ .abstract.md page.md");
  EXPECT_EQ(show("/r", {.levels = 2}), "one/=first one/page.md two/ two/page.md page.md");
  EXPECT_EQ(show("/none"), "ERROR not_found");
  EXPECT_EQ(show("/r/page.md"), "ERROR not_a_directory");
}

TEST_F(AgentListing, LimitsHoldInTheOrderOfTheTree) {
  for (const char* path : {"/r/a/x/1", "/r/a/x/2", "/r/a/y/3", "/r/b/z/4", "/r/c"}) fs.put(path, "1");
  const std::vector<std::string> order = {"a/", "a/x/", "a/x/1", "a/x/2", "a/y/", "a/y/3", "b/", "b/z/", "b/z/4", "c"};
  for (size_t limit = 0; limit <= order.size() + 1; ++limit) {
    std::string expected;
    for (size_t i = 0; i < std::min(limit, order.size()); ++i) expected += (i == 0 ? "" : " ") + order[i];
    EXPECT_EQ(show("/r", {.levels = 9, .node_limit = limit}), expected) << limit;
  }
  EXPECT_EQ(show("/r", {.levels = 0}), "");
}

TEST_F(AgentListing, ALongAbstractIsCutBeforeACharacter) {
  fs.put("/r/d/.abstract.md", "ab\xC3\xA9z");
  EXPECT_EQ(show("/r", {.abstract_bytes = 5}), "d/=ab\xC3\xA9z");
  EXPECT_EQ(show("/r", {.abstract_bytes = 4}), "d/=ab\xC3\xA9");
  EXPECT_EQ(show("/r", {.abstract_bytes = 3}), "d/=ab");
  EXPECT_EQ(show("/r", {.abstract_bytes = 0}), "d/=");
}

TEST_F(AgentListing, AnAbstractThatCannotBeReadIsNotAMissingOne) {
  fs.put("/r/d/.abstract.md", "1");
  fs.put("/r/e/page", "1");
  fs.set_hook([](std::string_view operation, PathView path) {
    const bool fails = operation == "read" && path.text() == "/r/d/.abstract.md";
    return fails ? std::optional(Error{ErrorCode::io, "broken"}) : std::nullopt;
  });
  EXPECT_EQ(show("/r"), "d/!io e/");
}

TEST_F(AgentListing, ADirectoryThatVanishesMeanwhileIsEmpty) {
  fs.put("/r/d/page", "1");
  fs.put("/r/e/page", "1");
  fs.set_hook([](std::string_view operation, PathView path) {
    const bool gone = operation == "read_dir" && path.text() == "/r/d";
    return gone ? std::optional(Error{ErrorCode::not_found, "/r/d"}) : std::nullopt;
  });
  EXPECT_EQ(show("/r", {.levels = 2}), "d/ e/ e/page");
  fs.set_hook([](std::string_view operation, PathView path) {
    const bool broken = operation == "read_dir" && path.text() == "/r/d";
    return broken ? std::optional(Error{ErrorCode::io, "/r/d"}) : std::nullopt;
  });
  EXPECT_EQ(show("/r", {.levels = 2}), "ERROR io");
}

TEST_F(AgentListing, AContextIsWrittenWhole) {
  const auto written = write_context(fs, ctx, PathView::from_normal("/r/new"),
                                     {.content = "text", .abstract = "short", .overview = "longer"});
  ASSERT_TRUE(written);
  ASSERT_EQ(written->size(), 3U);
  EXPECT_EQ(written->front().path.text(), "/r/new/content.md");
  for (const WrittenFile& file : *written) EXPECT_TRUE(file.result) << file.path.text();
  EXPECT_EQ(show("/r"), "new/=short");
  EXPECT_EQ(show("/r/new", {.show_hidden = true}), ".abstract.md .overview.md content.md");
}

TEST_F(AgentListing, EachFileOfAContextIsReported) {
  fs.set_hook([](std::string_view operation, PathView path) {
    const bool fails = operation == "write" && path.name() == kAbstractName;
    return fails ? std::optional(Error{ErrorCode::full, "no space"}) : std::nullopt;
  });
  const auto written = write_context(fs, ctx, PathView::from_normal("/r"),
                                     {.content = "text", .abstract = "short", .overview = "longer"});
  ASSERT_TRUE(written);
  EXPECT_TRUE((*written)[0].result);
  ASSERT_FALSE((*written)[1].result);
  EXPECT_EQ((*written)[1].result.error().code, ErrorCode::full);
  EXPECT_TRUE((*written)[2].result);
}

TEST_F(AgentListing, AContextThatMakesNoSenseIsRefused) {
  const auto kind_of = [&](const ContextFiles& files) {
    const auto written = write_context(fs, ctx, PathView::from_normal("/r"), files);
    return written ? "ok" : std::string(kind_name(written.error().code));
  };
  EXPECT_EQ(kind_of({}), "invalid_operation");
  EXPECT_EQ(kind_of({.content_name = kAbstractName, .content = "1", .abstract = "2"}), "invalid_operation");
  EXPECT_EQ(kind_of({.content_name = "a/b", .content = "1"}), "invalid_path");
  EXPECT_EQ(show("/"), "") << "nothing was made";
}

}  // namespace
}  // namespace ragfs
