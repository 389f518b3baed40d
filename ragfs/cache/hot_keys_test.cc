#include "ragfs/cache/hot_keys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace ragfs {
namespace {

PathView P(std::string_view text) { return PathView::from_normal(text); }

TEST(HotKeysTest, TheMostReadComeFirstAndScopesAreApart) {
  HotKeys keys;
  for (int i = 0; i < 9; ++i) keys.note(P("/a/resources/one/hot.md"), ObjectKind::file, 1);
  for (int i = 0; i < 5; ++i) keys.note(P("/a/resources/one"), ObjectKind::listing, 1);
  keys.note(P("/a/resources/one/cold.md"), ObjectKind::file, 1);
  for (int i = 0; i < 7; ++i) keys.note(P("/a/resources/two/x.md"), ObjectKind::file, 1);
  const std::vector<HotKey> all = keys.top(PathView(), 10);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0], (HotKey{"/a/resources/one/hot.md", ObjectKind::file, 9}));
  EXPECT_EQ(all[1], (HotKey{"/a/resources/two/x.md", ObjectKind::file, 7}));
  EXPECT_EQ(all[2], (HotKey{"/a/resources/one", ObjectKind::listing, 5}));
  EXPECT_EQ(keys.top(PathView(), 2).size(), 2U);
  EXPECT_EQ(keys.top(P("/a/resources/two"), 10).size(), 1U);
  EXPECT_EQ(keys.of_scope(P("/a/resources/one/deep/down.md"), 10).size(), 3U);
  EXPECT_TRUE(keys.of_scope(P("/a/resources/three"), 10).empty());
}

// A hundred hot files among a hundred thousand that are read once.
TEST(HotKeysTest, FindsTheHotOnesInTheNoise) {
  HotKeys keys;
  std::mt19937_64 random(7);
  constexpr int kReads = 200'000;
  for (int i = 0; i < kReads; ++i) {
    const bool hot = random() % 2 == 0;
    const std::string name = hot ? fmt::format("hot{}", random() % 100) : fmt::format("cold{}", i);
    keys.note(P(fmt::format("/a/resources/r{}/{}", hot ? (name.back() - '0') : random() % 10, name)), ObjectKind::file,
              1);
  }
  const std::vector<HotKey> top = keys.top(PathView(), 100);
  size_t right = 0;
  for (const HotKey& key : top) right += key.path.contains("/hot") ? 1 : 0;
  EXPECT_GE(right, 95U);
  for (const HotKey& key : top) EXPECT_GE(key.reads, 1U);
}

TEST(HotKeysTest, ScopesAndPathsAreBounded) {
  HotKeys keys;
  for (size_t i = 0; i < 3 * HotKeys::kScopes; ++i) {
    keys.note(P(fmt::format("/a/session/s{}/m.md", i)), ObjectKind::file, 1);
  }
  EXPECT_EQ(keys.scopes(), HotKeys::kScopes);
  for (size_t i = 0; i < 10 * HotKeys::kPerScope; ++i) {
    keys.note(P(fmt::format("/a/resources/r/f{}", i)), ObjectKind::file, 1 + i);
  }
  const auto hot = keys.of_scope(P("/a/resources/r"), 1'000);
  EXPECT_EQ(hot.size(), HotKeys::kPerScope);
  EXPECT_EQ(hot.front().path, fmt::format("/a/resources/r/f{}", 10 * HotKeys::kPerScope - 1));
}

TEST(HotKeysTest, WhatIsNoLongerReadFades) {
  HotKeys keys;
  keys.note(P("/a/old"), ObjectKind::file, 1'000);
  for (int i = 0; i < 30; ++i) keys.note(P("/a/new"), ObjectKind::file, 1 << 19);
  const auto top = keys.top(PathView(), 10);
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].path, "/a/new");
  for (const HotKey& key : top) EXPECT_TRUE(key.path != "/a/old" || key.reads < 10) << key.reads;
}

TEST(HotKeysTest, ASampleStandsForTheReadsBetween) {
  HotKeys keys;
  uint64_t noted = 0;
  uint64_t calls = 0;
  for (int i = 0; i < 640'000; ++i) {
    const uint64_t reads = keys.sample();
    if (reads == 0) continue;
    keys.note(P("/a/f"), ObjectKind::file, reads);
    noted += reads;
    ++calls;
    if (i < 256) {
      EXPECT_EQ(reads, 1U) << "little traffic is seen as it is";
    }
  }
  EXPECT_NEAR(static_cast<double>(noted), 640'000, 256);
  EXPECT_LT(calls, 3'000U);
  EXPECT_EQ(keys.top(PathView(), 1)[0].reads, noted);
}

}  // namespace
}  // namespace ragfs
