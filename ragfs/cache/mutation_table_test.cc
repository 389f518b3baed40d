#include "ragfs/cache/mutation_table.h"

#include <gtest/gtest.h>

#include <string>

namespace ragfs {
namespace {

constexpr uint64_t kRoot = 11;

RecordPath record_of(const std::string& path) { return RecordPath(kRoot, PathView::from_normal(path)); }
PathTrail trail_of(const std::string& path) { return PathTrail(kRoot, PathView::from_normal(path)); }

uint64_t mutate(MutationTable& table, const std::string& path, ObjectKind kind) {
  table.begin(record_of(path), kind);
  const uint64_t value = table.advance_clock();
  table.end(record_of(path), kind, value);
  table.enforce_limits();
  return value;
}

TEST(MutationTable, AnEmptyTableRefusesNothing) {
  const MutationTable table;
  const Observation seen = table.observe(trail_of("/a/b"), ObjectKind::file);
  EXPECT_TRUE(seen.exact);
  EXPECT_FALSE(seen.running());
  EXPECT_EQ(seen.newest(), 0U);
}

TEST(MutationTable, APathRecordIsOfItsPathAndKindAlone) {
  MutationTable table;
  const uint64_t value = mutate(table, "/a/b", ObjectKind::file);
  EXPECT_EQ(table.observe_exactly(trail_of("/a/b"), ObjectKind::file).newest(), value);
  EXPECT_EQ(table.observe_exactly(trail_of("/a/b"), ObjectKind::listing).newest(), 0U);
  EXPECT_EQ(table.observe_exactly(trail_of("/a/b/c"), ObjectKind::file).newest(), 0U);
  EXPECT_EQ(table.observe_exactly(trail_of("/a"), ObjectKind::file).newest(), 0U);
  EXPECT_GE(table.observe(trail_of("/a/b"), ObjectKind::file).newest(), value);
}

TEST(MutationTable, ASubtreeRecordCoversAllBelowAndNoNeighbour) {
  MutationTable table;
  const uint64_t value = mutate(table, "/a/b", ObjectKind::subtree);
  for (const char* path : {"/a/b", "/a/b/c", "/a/b/c/d/e"}) {
    for (const ObjectKind kind : {ObjectKind::file, ObjectKind::listing}) {
      EXPECT_EQ(table.observe_exactly(trail_of(path), kind).newest(), value) << path;
      EXPECT_GE(table.observe(trail_of(path), kind).newest(), value) << path;
    }
  }
  for (const char* path : {"/a", "/a/bb", "/a/b2", "/b", "/"}) {
    EXPECT_EQ(table.observe_exactly(trail_of(path), ObjectKind::file).newest(), 0U) << path;
  }
}

TEST(MutationTable, ARunningSubtreeShowsBelowIt) {
  MutationTable table;
  table.begin(record_of("/a"), ObjectKind::subtree);
  EXPECT_TRUE(table.observe_exactly(trail_of("/a/b/c"), ObjectKind::file).running());
  EXPECT_TRUE(table.observe(trail_of("/a/b/c"), ObjectKind::file).running());
  EXPECT_FALSE(table.observe_exactly(trail_of("/b"), ObjectKind::file).running());
  table.abandon(record_of("/a"), ObjectKind::subtree);
  EXPECT_FALSE(table.observe_exactly(trail_of("/a/b/c"), ObjectKind::file).running());
  EXPECT_EQ(table.subtree_records(), 0U);
}

// The tag of a path's shard stays the same while nothing that covers the path happens, and only then.
TEST(MutationTable, TheTagChangesWithEveryMutationThatCoversThePath) {
  MutationTable table;
  const std::string file = "/acct/resources/r/d/f";
  const auto tag = [&] { return table.observe_exactly(trail_of(file), ObjectKind::file).tag; };
  uint64_t before = tag();
  EXPECT_NE(before, 0U);
  struct Step {
    const char* path;
    ObjectKind kind;
  };
  for (const Step& step :
       {Step{"/acct/resources/r/d/f", ObjectKind::file}, Step{"/acct/resources/r/d", ObjectKind::subtree},
        Step{"/acct/resources/r", ObjectKind::subtree}, Step{"/acct/resources", ObjectKind::subtree},
        Step{"/acct", ObjectKind::subtree}, Step{"/", ObjectKind::subtree}}) {
    table.begin(record_of(step.path), step.kind);
    EXPECT_EQ(tag(), 0U) << step.path << " runs";
    table.end(record_of(step.path), step.kind, table.advance_clock());
    EXPECT_NE(tag(), before) << step.path;
    EXPECT_NE(tag(), 0U);
    before = tag();
  }
  table.begin(record_of(file), ObjectKind::file);
  table.abandon(record_of(file), ObjectKind::file);
  EXPECT_EQ(tag(), before) << "an abandoned mutation changed nothing";
  EXPECT_EQ(table.tag(kRoot, PathView::from_normal(file), ObjectKind::file), before) << "asked without a trail";
}

// What was judged stays judged while its neighbours change: only few objects share a word.
TEST(MutationTable, TheTagStaysWhenANeighbourChanges) {
  MutationTable table;
  const std::string dir = "/acct/resources/r/d/";
  const auto tag = [&](int i) {
    return table.tag(kRoot, PathView::from_normal(dir + std::to_string(i)), ObjectKind::file);
  };
  std::vector<uint64_t> before;
  for (int i = 0; i < 1'000; ++i) before.push_back(tag(i));
  const uint64_t value = mutate(table, dir + "0", ObjectKind::file);
  EXPECT_EQ(tag(0), value);
  int changed = 0;
  for (int i = 1; i < 1'000; ++i) changed += tag(i) != before[static_cast<size_t>(i)] ? 1 : 0;
  EXPECT_LT(changed, 10);
  EXPECT_EQ(table.tag(kRoot, PathView::from_normal(dir + "0"), ObjectKind::listing), before[0])
      << "a listing of the same path is another object";
}

// A record whose value was taken before another mutation's: a tag noted in between must not outlive it.
TEST(MutationTable, ARecordThatComesLateChangesTheTag) {
  for (const ObjectKind kind : {ObjectKind::file, ObjectKind::subtree}) {
    MutationTable table;
    const std::string file = "/acct/resources/r/d/f";
    const auto tag = [&] { return table.observe_exactly(trail_of(file), ObjectKind::file).tag; };
    const uint64_t value = table.advance_clock();
    mutate(table, "/acct/resources/r", ObjectKind::subtree);
    const uint64_t noted = tag();
    table.record(record_of(file), kind, value);
    EXPECT_NE(tag(), noted);
    EXPECT_NE(tag(), 0U);
  }
}

TEST(MutationTable, PathRecordsFoldInsideTheirScope) {
  MutationTable table({.max_path_records = 32, .max_subtree_records = 1'000});
  std::vector<std::pair<std::string, uint64_t>> mutated;
  for (int i = 0; i < 500; ++i) {
    const std::string path =
        "/acct/resources/r" + std::to_string(i % 3) + "/d" + std::to_string(i % 5) + "/f" + std::to_string(i);
    mutated.emplace_back(path, mutate(table, path, ObjectKind::file));
  }
  EXPECT_LE(table.path_records(), 64U);
  EXPECT_FALSE(table.overflowed());
  for (const auto& [path, value] : mutated) {
    EXPECT_GE(table.observe_exactly(trail_of(path), ObjectKind::file).newest(), value) << path;
    EXPECT_GE(table.observe(trail_of(path), ObjectKind::file).newest(), value) << path;
  }
  EXPECT_EQ(table.observe_exactly(trail_of("/acct/resources/other/f"), ObjectKind::file).newest(), 0U)
      << "folding stays inside a scope";
  EXPECT_EQ(table.observe_exactly(trail_of("/acct"), ObjectKind::listing).newest(), 0U);
}

TEST(MutationTable, WhatCannotFoldOverflowsAndAResetKeepsWhatRuns) {
  MutationTable table({.max_path_records = 4, .max_subtree_records = 4, .max_marked_keys = 2});
  for (int i = 0; i < 12; ++i) mutate(table, "/account" + std::to_string(i), ObjectKind::file);
  EXPECT_TRUE(table.overflowed());
  table.begin(record_of("/running"), ObjectKind::file);
  table.reset(table.clock(), 1);
  EXPECT_FALSE(table.overflowed());
  EXPECT_EQ(table.path_records(), 1U);
  EXPECT_TRUE(table.observe_exactly(trail_of("/running"), ObjectKind::file).running());
  const uint64_t clock = table.clock();
  EXPECT_GT(table.advance_clock(), clock) << "the clock never restarts inside a life";
}

TEST(MutationTable, MarksOverflowAndNeverFold) {
  MutationTable table({.max_path_records = 4, .max_subtree_records = 1'000, .max_marked_keys = 20});
  for (int i = 0; i < 20; ++i) {
    const std::string path = "/acct/resources/r/d/f" + std::to_string(i);
    table.mark(record_of(path), ObjectKind::file, 100, 7);
    mutate(table, path, ObjectKind::file);
  }
  EXPECT_EQ(table.marked(), 20U);
  EXPECT_EQ(table.path_records(), 20U);
  EXPECT_TRUE(table.overflowed()) << "records over twice the limit that cannot fold";
  EXPECT_FALSE(table.drop(trail_of("/acct/resources/r/d/f0"), ObjectKind::file, UINT64_MAX));
  EXPECT_EQ(table.expire_marks(100), 0U);
  for (int i = 0; i < 20; ++i) table.enforce_limits();  // a sixteenth of the limit at a time
  EXPECT_FALSE(table.overflowed());
}

TEST(MutationTable, ARecordIsDroppedByItsOwnValueOnly) {
  MutationTable table;
  const uint64_t first = mutate(table, "/f", ObjectKind::file);
  const uint64_t second = mutate(table, "/f", ObjectKind::file);
  EXPECT_FALSE(table.drop(trail_of("/f"), ObjectKind::file, first));
  EXPECT_EQ(table.observe_exactly(trail_of("/f"), ObjectKind::file).newest(), second);
  EXPECT_TRUE(table.drop(trail_of("/f"), ObjectKind::file, second));
  EXPECT_EQ(table.path_records(), 0U);
}

}  // namespace
}  // namespace ragfs
