#include "ragfs/base/path.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

std::string parsed(std::string_view raw) {
  auto path = Path::parse(raw);
  return path ? path->text() : "ERROR " + std::string(kind_name(path.error().code));
}

TEST(Path, HasOneSpelling) {
  EXPECT_EQ(parsed(""), "/");
  EXPECT_EQ(parsed("/"), "/");
  EXPECT_EQ(parsed("//"), "/");
  EXPECT_EQ(parsed("a/b"), "/a/b");
  EXPECT_EQ(parsed("/a//b/"), "/a/b");
  EXPECT_EQ(parsed("/./a/./b/."), "/a/b");
  EXPECT_EQ(parsed("/a /b"), "/a /b");
  EXPECT_EQ(parsed("/...a/..b"), "/...a/..b");
  EXPECT_EQ(parsed("/a\xff/\xc3\xa9"), "/a\xff/\xc3\xa9");
}

TEST(Path, RefusesWhatMayEscapeOrBreak) {
  EXPECT_EQ(parsed("/a/../b"), "ERROR invalid_path");
  EXPECT_EQ(parsed(".."), "ERROR invalid_path");
  EXPECT_EQ(parsed(std::string_view("/a\0b", 4)), "ERROR invalid_path");
  EXPECT_EQ(parsed("/" + std::string(255, 'x')), "/" + std::string(255, 'x'));
  EXPECT_EQ(parsed("/" + std::string(256, 'x')), "ERROR invalid_path");
  std::string deep;
  for (int i = 0; i < 2047; ++i) deep += "/x";
  EXPECT_EQ(parsed(deep), deep);
  EXPECT_EQ(parsed(deep + "/xy"), "ERROR invalid_path");
}

TEST(Path, NormalIsRecognisedWithoutParsing) {
  for (std::string_view text : {"/", "/a", "/a/b.md", "/..a", "/.a", "/a..", "/..."}) {
    EXPECT_TRUE(PathView::is_normal(text)) << text;
    EXPECT_EQ(parsed(text), text);
  }
  for (std::string_view text : {"", "a", "//", "/a/", "/a//b", "/.", "/./a", "/..", "/a/..", "/a/../b"}) {
    EXPECT_FALSE(PathView::is_normal(text)) << text;
  }
}

// Names around the words that are looked at together, and in texts shorter than one.
TEST(Path, NameAndPrefixesAtEveryLength) {
  for (size_t above = 0; above <= 20; ++above) {
    for (size_t length = 1; length <= 40; ++length) {
      const std::string parent = above == 0 ? "" : "/" + std::string(above, 'p');
      const std::string name(length, 'n');
      const std::string text = parent + "/" + name;
      const PathView path = PathView::from_normal(text);
      ASSERT_EQ(path.name(), name) << text;
      ASSERT_EQ(path.prefix_bytes(0), 1U);
      ASSERT_EQ(path.prefix_bytes(1), above == 0 ? text.size() : parent.size()) << text;
      ASSERT_EQ(path.prefix_bytes(2), text.size()) << text;
      ASSERT_EQ(path.prefix_bytes(9), text.size()) << text;
    }
  }
  EXPECT_EQ(PathView().name(), "");
  EXPECT_EQ(PathView::from_normal("/a/b/c/d").prefix_bytes(3), 6U);
  // Bytes whose bits are a slash's but for one.
  EXPECT_EQ(PathView::from_normal("/\xaf\x2e\x30\x0f\x6f\x2f\xaf.").name(), "\xaf.");
}

TEST(Path, Parts) {
  const PathView path = PathView::from_normal("/a/b/c");
  EXPECT_EQ(path.name(), "c");
  EXPECT_EQ(path.parent().text(), "/a/b");
  EXPECT_EQ(path.depth(), 3U);
  EXPECT_TRUE(path.is_within(PathView::from_normal("/a/b")));
  EXPECT_TRUE(path.is_within(path));
  EXPECT_TRUE(path.is_within(PathView()));
  EXPECT_FALSE(PathView::from_normal("/ab").is_within(PathView::from_normal("/a")));
  EXPECT_EQ(path.relative_to(PathView::from_normal("/a")).text(), "/b/c");
  EXPECT_EQ(path.relative_to(path).text(), "/");
  EXPECT_EQ(PathView().parent().text(), "/");
  EXPECT_EQ(PathView().name(), "");
  EXPECT_EQ(Path::concat(PathView::from_normal("/m"), PathView::from_normal("/a"))->text(), "/m/a");
  EXPECT_EQ(Path::concat(PathView(), PathView::from_normal("/a"))->text(), "/a");
  EXPECT_EQ(Path::concat(PathView::from_normal("/m"), PathView())->text(), "/m");
  EXPECT_FALSE(Path::join(PathView(), "a/b"));
  EXPECT_FALSE(Path::join(PathView(), ".."));
  EXPECT_EQ(Path::join(PathView(), "a")->text(), "/a");
}

}  // namespace
}  // namespace ragfs
