// `ragfs tour`, what ./run ends with: the tree, both passes, the hit rate, what to try next; and nothing is changed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_line/program.h"

namespace ragfs::test {
namespace {

class Tour : public CommandLineTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < 40; ++i) {
      const std::string name = "docs/" + std::to_string(i % 4) + "/page" + std::to_string(i) + ".md";
      dir_.write(name, "# page " + std::to_string(i) + "\n");
    }
  }
  // Every path with its size and time, and every content.
  std::string picture() const {
    std::string all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      const auto path = std::filesystem::relative(entry.path(), dir_.path()).string();
      all += path + " " + std::to_string(entry.last_write_time().time_since_epoch().count()) + "\n";
      if (entry.is_regular_file()) all += dir_.read(path);
    }
    return all;
  }
};

TEST_F(Tour, ShowsBothPassesAndChangesNothing) {
  const std::string before = picture();
  const Outcome outcome = ragfs({"tour"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part : {"40 files in 5 directories", "cold ", "warm ", "0.0% hits", "100.0% hits",
                           "provider embedded, breaker closed", "what to try next"}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << "\n" << outcome.out;
  }
  EXPECT_EQ(picture(), before);
}

TEST_F(Tour, AnEmptyDirectoryIsNoError) {
  std::filesystem::remove_all(dir_.file("docs"));
  EXPECT_EQ(ragfs({"tour"}).code, 0);
}

TEST_F(Tour, UnreadableFilesAreCountedAndDoNotEndIt) {
  ASSERT_EQ(::chmod(dir_.file("docs/1/page1.md").c_str(), 0), 0);
  const Outcome outcome = ragfs({"tour"}, {.as_nobody = true});
  EXPECT_TRUE(contains(outcome.out, "what to try next")) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out + outcome.err, "1 file")) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace ragfs::test
