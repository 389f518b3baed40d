#include "ragfs/base/log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace ragfs {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "log-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string file() const { return root_ + "/ragfs.log"; }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::string root_;
};

TEST_F(LogTest, WritesWhatIsImportantEnoughToAFileOfItsOwner) {
  {
    const auto log = Log::open(file(), LogLevel::warn).value();
    log->write(LogLevel::info, "not this");
    log->write(LogLevel::warn, "action=one");
    log->write(LogLevel::error, "action=two path=/a\nforged \x1b[31m");
  }
  EXPECT_EQ(text().find("not this"), std::string::npos);
  EXPECT_NE(text().find("Z warn action=one\n"), std::string::npos) << text();
  EXPECT_NE(text().find("error action=two path=/a\\x0aforged \\x1b[31m\n"), std::string::npos) << text();
  struct stat info = {};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  // It goes on with what is there.
  Log::open(file(), LogLevel::warn).value()->write(LogLevel::warn, "action=three");
  EXPECT_NE(text().find("action=one"), std::string::npos);
  EXPECT_NE(text().find("action=three"), std::string::npos);
}

TEST_F(LogTest, OffWritesNothing) {
  Log::open(file(), LogLevel::off).value()->write(LogLevel::error, "x");
  EXPECT_EQ(text(), "");
}

TEST_F(LogTest, AFloodOfLinesIsCutAndSaidSo) {
  const auto log = Log::open(file(), log_level_of("info")).value();
  for (int i = 0; i < 1'000; ++i) log->write_some(LogLevel::warn, "flood");
  const std::string all = text();
  const auto lines = std::count(all.begin(), all.end(), '\n');
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 80) << "some seconds at most";
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) { EXPECT_FALSE(Log::open(root_ + "/none/x.log", LogLevel::info)); }

}  // namespace
}  // namespace ragfs
