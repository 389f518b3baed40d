// Bounds reached: folding, a full retry queue, too many marks. It may only ever refuse more.
#include <gtest/gtest.h>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class OverflowTest : public HookedFixture {
 protected:
  // Files that are cached with old bytes, then changed while no erase works: their records are all that refuses them.
  void make_stale(int count) {
    for (int i = 0; i < count; ++i) put_in_backend(path(i), "old");
    for (int i = 0; i < count; ++i) EXPECT_EQ(read(path(i)), "old");
    provider->add_rule({.op = scripted::Op::erase, .action = scripted::Action::fail, .code = ErrorCode::full});
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(cached->write(ctx, path_of(path(i)), "+", 0, WriteFlag::append));
    }
  }
  void expect_new(int count) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(read(path(i)), "old+") << i;
  }
  static std::string path(int i) {
    return "/acct/resources/r" + std::to_string(i % 7) + "/d" + std::to_string(i % 31) + "/f" + std::to_string(i);
  }
};

TEST_F(OverflowTest, PathRecordsFoldAndStillRefuse) {
  CoherenceConfig config;
  config.table.max_path_records = 50;
  config.retry_first_ms = 60'000;
  config.retry_most_ms = 60'000;
  config.sweep_interval_ms = 0;
  config.sweep_records = 1'000'000;
  open_hooked(config, {});
  make_stale(500);
  EXPECT_LE(domain->table().path_records(), 100U);
  EXPECT_GT(domain->table().subtree_records(), 0U);
  expect_new(500);
}

TEST_F(OverflowTest, SubtreeRecordsFoldAndStillRefuse) {
  CoherenceConfig config;
  config.table.max_subtree_records = 20;
  config.sweep_interval_ms = 0;
  config.sweep_records = 1'000'000;
  open_hooked(config, {});
  for (int i = 0; i < 200; ++i) put_in_backend(path(i), "old");
  for (int i = 0; i < 200; ++i) EXPECT_EQ(read(path(i)), "old");
  provider->add_rule({.op = scripted::Op::erase, .action = scripted::Action::fail, .code = ErrorCode::full});
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(cached->remove_all(ctx, path_of(path(i))));
  EXPECT_LE(domain->table().subtree_records(), 40U);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(read(path(i)), "ERROR not_found") << i;
}

// What cannot fold (every path at its scope's root) starts a new epoch.
TEST_F(OverflowTest, WhatCannotFoldStartsANewEpoch) {
  CoherenceConfig config;
  config.table.max_path_records = 10;
  config.retry_first_ms = 60'000;
  config.retry_most_ms = 60'000;
  open_hooked(config, {});
  for (int i = 0; i < 100; ++i) put_in_backend("/account" + std::to_string(i), "old");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(read("/account" + std::to_string(i)), "old");
  provider->add_rule({.op = scripted::Op::erase, .action = scripted::Action::fail, .code = ErrorCode::full});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(cached->write(ctx, path_of("/account" + std::to_string(i)), "+", 0, WriteFlag::append));
  }
  EXPECT_GT(domain->counters().read(CacheCounter::new_epoch), 0U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(read("/account" + std::to_string(i)), "old+");
}

TEST_F(OverflowTest, TooManyMarkedKeysStartANewEpoch) {
  CoherenceConfig config;
  config.table.max_marked_keys = 8;
  config.guard.failures_to_open = 100'000;
  open_hooked(config, {});
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late});
  for (int i = 0; i < 50; ++i) {
    put_in_backend(path(i), "old");
    EXPECT_EQ(read(path(i)), "old");
    ASSERT_TRUE(cached->write(ctx, path_of(path(i)), "+", 0, WriteFlag::append));
  }
  EXPECT_LE(domain->table().marked(), 9U);
  EXPECT_GT(domain->counters().read(CacheCounter::new_epoch), 0U);
  EXPECT_GT(provider->land_all(), 0U);
  expect_new(50);
}

TEST_F(OverflowTest, AFullRetryQueueKeepsTheRecords) {
  CoherenceConfig config;
  config.max_pending = 4;
  config.retry_first_ms = 1;
  config.retry_most_ms = 1;
  open_hooked(config, {});
  make_stale(100);
  EXPECT_GT(domain->counters().read(CacheCounter::retry_queue_overflow), 0U);
  expect_new(100);
  provider->clear_rules();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  expect_new(100);
}

}  // namespace
}  // namespace ragfs
