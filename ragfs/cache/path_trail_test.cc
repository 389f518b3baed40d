#include "ragfs/cache/path_trail.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ragfs {
namespace {

PathTrail trail_of(const std::string& path, uint64_t root_id = 1) {
  return PathTrail(root_id, PathView::from_normal(path));
}

TEST(PathTrail, HasAnIdForThePathAndEachAncestor) {
  EXPECT_EQ(trail_of("/").size(), 1U);
  EXPECT_EQ(trail_of("/", 7).self(), 7U);
  const PathTrail trail = trail_of("/a/b/c");
  ASSERT_EQ(trail.size(), 4U);
  EXPECT_EQ(trail[0], 1U);
  EXPECT_EQ(trail[1], trail_of("/a").self());
  EXPECT_EQ(trail[2], trail_of("/a/b").self());
  EXPECT_EQ(trail[3], trail.self());
}

TEST(PathTrail, DifferentPathsAndRootsHaveDifferentIds) {
  std::set<uint64_t> ids;
  const std::vector<std::string> paths = {"/a", "/b", "/ab", "/a/b", "/b/a", "/a/a", "/aa", "/a/b/c", "/ab/c", "/a/bc"};
  // Root ids are hashes.
  for (const uint64_t root : {1, 2, 3}) {
    for (const std::string& path : paths) ids.insert(trail_of(path, mix64(root)).self());
  }
  EXPECT_EQ(ids.size(), 3 * paths.size());
}

// Paths deeper than what is kept inline behave the same, around the border too.
TEST(PathTrail, DeepPathsKeepAllIds) {
  for (size_t depth = 1; depth <= 200; ++depth) {
    std::string path;
    std::string parent = "/";
    for (size_t i = 0; i < depth; ++i) {
      if (i > 0) parent = path;
      path += "/d" + std::to_string(i);
    }
    const PathTrail trail = trail_of(path);
    ASSERT_EQ(trail.size(), depth + 1);
    EXPECT_EQ(trail[depth - 1], trail_of(parent).self()) << depth;
    EXPECT_EQ(trail.text_id(), PathTrail::text_id(1, PathView::from_normal(path))) << depth;
  }
}

}  // namespace
}  // namespace ragfs
