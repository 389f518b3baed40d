#include "ragfs/cache/listing_codec.h"

#include <gtest/gtest.h>

#include <random>

namespace ragfs {
namespace {

std::vector<FileInfo> sample_entries(size_t count) {
  std::vector<FileInfo> entries;
  for (size_t i = 0; i < count; ++i) {
    entries.push_back({.name = "name-" + std::to_string(i * 7919 % 100'003),
                       .size = i * 1'000'003,
                       .mode = static_cast<uint32_t>(i % 0777),
                       .mtime_ns = static_cast<int64_t>(i) * -1'000'000'007,
                       .kind = static_cast<FileKind>(i % 3)});
  }
  sort_entries(entries);
  return entries;
}

TEST(ListingCodec, ComesBackAsItWentInItsOrder) {
  for (const size_t count : {0, 1, 2, 3, 1'000}) {
    const std::vector<FileInfo> entries = sample_entries(count);
    const std::string packed = pack_listing(entries);
    for (const bool check : {false, true}) {
      const auto view = ListingView::parse(packed, check);
      ASSERT_TRUE(view);
      EXPECT_EQ(view->size(), count);
      EXPECT_EQ(view->entries(), entries);
    }
  }
}

TEST(ListingCodec, FindsEveryNameAndNoOther) {
  const std::vector<FileInfo> entries = sample_entries(500);
  const std::string packed = pack_listing(entries);
  const auto view = ListingView::parse(packed, true);
  ASSERT_TRUE(view);
  for (const FileInfo& entry : entries) EXPECT_EQ(view->find(entry.name), entry);
  for (const char* absent : {"", "name", "name-", "name-x", "zzz", "\x01"}) EXPECT_FALSE(view->find(absent)) << absent;
}

TEST(ListingCodec, NamesAreBytes) {
  const std::string nfc = "\xc3\xa9";
  const std::string nfd = "e\xcc\x81";
  std::vector<FileInfo> entries;
  for (const std::string& name :
       {std::string("\xff\xfe"), nfc, nfd, std::string(255, 'n'), std::string("\xed\xa0\x80")}) {
    entries.push_back({.name = name, .size = name.size()});
  }
  sort_entries(entries);
  const std::string packed = pack_listing(entries);
  const auto view = ListingView::parse(packed, true);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->entries(), entries);
  EXPECT_EQ(view->find(nfc)->size, nfc.size());
  EXPECT_EQ(view->find(nfd)->size, nfd.size());
}

TEST(ListingCodec, TruncatedBytesAreNoListing) {
  const std::string packed = pack_listing(sample_entries(10));
  for (size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(ListingView::parse(std::string_view(packed).substr(0, size), true)) << size;
  }
}

// Bytes from outside: whatever is in them, no read leaves them (the sanitizers look), checked or not.
TEST(ListingCodec, DamagedBytesAreRefusedOrReadWithinTheirBounds) {
  const std::string packed = pack_listing(sample_entries(10));
  std::minstd_rand random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = packed;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    for (const bool check : {false, true}) {
      const auto view = ListingView::parse(damaged, check);
      if (!view || view->size() > 1'000) continue;
      EXPECT_EQ(view->entries().size(), view->size());
      (void)view->find("name-7919");
    }
  }
}

TEST(ListingCodec, ACountPastTheBytesIsRefused) {
  std::string packed = pack_listing(sample_entries(2));
  for (const unsigned char count : {3, 200, 255}) {
    packed[0] = static_cast<char>(count);
    packed[3] = static_cast<char>(count == 255 ? 255 : 0);
    EXPECT_FALSE(ListingView::parse(packed, true)) << int{count};
  }
}

}  // namespace
}  // namespace ragfs
