#include "ragfs/fs/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ragfs/fs/file_system.h"
#include "ragfs/fs/utf8.h"

namespace ragfs {
namespace {

TEST(Names, InternalNamesAreKnown) {
  EXPECT_TRUE(is_internal_name(".path.ovlock"));
  EXPECT_TRUE(is_internal_name(".exact.ovlock.name..txt.591847f8876e86f7"));
  EXPECT_TRUE(is_internal_name(".redirect.json"));
  EXPECT_TRUE(is_internal_name(".sync_log.json"));
  EXPECT_FALSE(is_internal_name(".abstract.md"));
  EXPECT_FALSE(is_internal_name("path.ovlock"));
  EXPECT_FALSE(is_internal_name(".path.ovlock2"));
}

TEST(Names, ListingOrderIgnoresCaseFirst) {
  EXPECT_TRUE(compare_listing_names("a", "B") < 0);
  EXPECT_TRUE(compare_listing_names("A", "a") < 0);
  EXPECT_TRUE(compare_listing_names("a", "aa") < 0);
  EXPECT_TRUE(compare_listing_names("\xC3\x89ta", "\xC3\xA9tz") < 0);  // É sorts with é
  EXPECT_TRUE(compare_listing_names("\xD0\x90", "\xD0\xB1") < 0);      // Cyrillic А before б
  EXPECT_TRUE(compare_listing_names("\xFF", "\xF0\x9F\x98\x80") > 0);  // a broken byte comes last
  EXPECT_TRUE(compare_listing_names("x", "x") == 0);
  EXPECT_TRUE(compare_listing_names("\xFF", "\xFE") != 0);
}

TEST(Names, EntriesAreSortedDirectoriesFirst) {
  std::vector<FileInfo> entries(4);
  entries[0].name = "b";
  entries[1].name = "A";
  entries[2].name = "z";
  entries[2].kind = FileKind::directory;
  entries[3].name = "link";
  entries[3].kind = FileKind::other;
  sort_entries(entries);
  EXPECT_EQ(entries[0].name, "z");
  EXPECT_EQ(entries[1].name, "A");
  EXPECT_EQ(entries[2].name, "b");
  EXPECT_EQ(entries[3].name, "link");
}

TEST(Utf8, LossyTextReplacesEachBrokenPieceOnce) {
  EXPECT_EQ(lossy_utf8("a\xFF\xFE"
                       "b"),
            "a\uFFFD\uFFFDb");
  EXPECT_EQ(lossy_utf8("\xE4\xB8"), "\uFFFD");  // one truncated character
  EXPECT_EQ(lossy_utf8("\xE4\xB8"
                       "x"),
            "\uFFFDx");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate is no UTF-8
  EXPECT_EQ(lossy_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(lossy_utf8("\xF0\x9F\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_TRUE(is_valid_utf8("\xF4\x8F\xBF\xBF"));
  EXPECT_FALSE(is_valid_utf8("\xF4\x90\x80\x80"));
}

TEST(Utf8, Utf16ComesInPiecesOfAnyLength) {
  const std::string_view little(
      "a\0\x3D\xD8\x00\xDE"
      "b\0",
      8);  // a, U+1F600, b
  for (size_t cut = 0; cut <= little.size(); ++cut) {
    Utf16Decoder decoder(false);
    std::string out;
    decoder.feed(little.substr(0, cut), out);
    decoder.feed(little.substr(cut), out);
    decoder.finish(out);
    EXPECT_EQ(out, "a\U0001F600b") << cut;
  }
  Utf16Decoder decoder(true);
  std::string out;
  decoder.feed(std::string_view("\xD8\x3D\0a\xDC\0\0", 7), out);  // a high surrogate alone, a, a low one, half a unit
  decoder.finish(out);
  EXPECT_EQ(out, "\uFFFDa\uFFFD\uFFFD");
}

}  // namespace
}  // namespace ragfs
