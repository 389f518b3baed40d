// The redis provider over a cluster of six nodes.
#include <atomic>
#include <vector>

#include "ragfs/providers/redis/key_slot.h"
#include "tests/redis/redis_fixture.h"
#include "tests/redis/redis_groups.h"

namespace ragfs::redis_test {
namespace {

RedisConfig config_of(const ClusterGroup& group) {
  RedisConfig config = config_for(group.endpoints()[0]);
  config.mode = redis::Mode::cluster;
  config.endpoints.clear();
  for (const std::string& at : group.endpoints()) config.endpoints.push_back(*Endpoint::parse(at));
  return config;
}

int slot_of(int i) { return redis::key_slot("t:" + std::string(key_of(i).text())); }

TEST(RedisCluster, BatchesGoWhereTheirKeysAre) {
  const ClusterGroup group(false, 3);
  const auto provider = provider_for(config_of(group));
  constexpr int kCount = 200;
  std::vector<std::string> values;
  std::vector<CacheKey> keys;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(value_of(i));
    keys.push_back(key_of(i));
  }
  std::vector<PutItem> items;
  for (size_t i = 0; i < kCount; ++i) items.push_back({keys[i], {"", values[i]}, {}});
  for (const auto& stored : provider->put_many(items, soon())) ASSERT_TRUE(stored) << stored.error().text();
  const auto got = provider->get_many(keys, soon());
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(shown(got[i]), values[i]);
  EXPECT_EQ(provider->stats().read(redis::Event::redirects_followed), 0u);
  const auto refused = provider->put_atomic(std::span(items).first(2), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_supported);
}

TEST(CaseF10, EveryKeyOfABatchIsErasedWhateverItsSlot) {
  const ClusterGroup group(false, 3);
  const auto provider = provider_for(config_of(group));
  const std::vector<CacheKey> keys = {CacheKey("file:n:a:1"), CacheKey("dir:n:a:2"), CacheKey("dir:n:a:3")};
  for (const CacheKey& key : keys) ASSERT_TRUE(provider->put(key, {"", "v"}, {}, soon()));
  for (const auto& erased : provider->erase_many(keys, soon())) EXPECT_TRUE(erased);
  for (const auto& gone : provider->get_many(keys, soon())) EXPECT_EQ(shown(gone), "(absent)");
}

TEST(RedisCluster, AHashTagKeepsAllKeysTogetherForAtomicPuts) {
  const ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.hash_tag = "one";
  const auto provider = provider_for(config);
  const std::vector<PutItem> items = {{key_of(1), {"", "one"}, {}}, {key_of(2), {"", "two"}, {}}};
  ASSERT_TRUE(provider->put_atomic(items, soon()));
  EXPECT_EQ(shown(provider->get(key_of(2), soon())), "two");
}

// With one connection a node, many threads, and slots that move under them: F05 and F08.
TEST(CaseF05, SlotsMoveUnderLoadWithoutAnErrorAndWithoutAnotherIncarnation) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.pool_size = 1;
  const auto provider = provider_for(config);
  constexpr int kKeys = 40;
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(put(*provider, i));
  const std::string before = provider->incarnation();
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::atomic<int> errors = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 50; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !stop; ++i) {
        const auto got = provider->get(key_of(i % kKeys), soon());
        if (!got) ++errors;
        if (got && shown(got) != value_of(i % kKeys)) ++wrong;
        if (i % 5 == 0 && !put(*provider, i % kKeys)) ++errors;
      }
    });
  }
  for (int i = 0; i < 12; ++i) {
    const int slot = slot_of(i);
    const size_t from = group.owner(slot);
    group.migrate(slot, from, (from + 1) % 3);
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(errors, 0);
  EXPECT_GT(provider->stats().read(redis::Event::redirects_followed), 0u);
  EXPECT_EQ(provider->stats().read(redis::Event::slot_takeovers), 0u);
  EXPECT_EQ(provider->incarnation(), before);
}

class CaseF08 : public ::testing::TestWithParam<int> {};

TEST_P(CaseF08, ForcedRedirectsWithFewConnectionsAndTwoHundredThreadsEnd) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.pool_size = GetParam();
  const auto provider = provider_for(config);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(put(*provider, i));
  // The whole map is wrong at once: each slot of the keys moves before anybody asks again.
  for (int i = 0; i < 20; ++i) {
    const size_t from = group.owner(slot_of(i));
    group.migrate(slot_of(i), from, (from + 1) % 3);
  }
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 200; ++t) {
      threads.emplace_back([&, t] {
        if (shown(provider->get(key_of(t % 20), soon())) != value_of(t % 20)) ++errors;
      });
    }
  }
  EXPECT_EQ(errors, 0);
}

INSTANTIATE_TEST_SUITE_P(PoolSizes, CaseF08, ::testing::Values(1, 2));

// A key that is on the other side already, in a slot that is still here.
TEST(RedisCluster, AsksTheOtherNodeWhileASlotMoves) {
  ClusterGroup group(false, 3);
  const auto provider = provider_for(config_of(group));
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  const int slot = slot_of(1);
  const size_t from = group.owner(slot);
  const size_t to = (from + 1) % 3;
  group.begin_migration(slot, from, to);
  const std::string port = std::to_string(group.node(to).port());
  group.node(from).cli({"MIGRATE", "127.0.0.1", port, "t:" + std::string(key_of(1).text()), "0", "5000"});
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  EXPECT_TRUE(put(*provider, 1));
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  const std::vector<CacheKey> keys = {key_of(1), key_of(2)};
  for (const auto& absent : provider->get_many(keys, soon())) EXPECT_EQ(shown(absent), "(absent)");
  EXPECT_GE(provider->stats().read(redis::ReplyError::ask), 4U);
  EXPECT_EQ(provider->incarnation(), before);
}

// Of the keys of one transaction some are here and some are not yet: it fails within its bound, and goes through later.
TEST(RedisCluster, ATransactionOverAMovingSlotFailsUntilItHasMoved) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.hash_tag = "one";
  const auto provider = provider_for(config);
  const std::vector<PutItem> items = {{key_of(1), {"", "one"}, {}}, {key_of(2), {"", "two"}, {}}};
  ASSERT_TRUE(provider->put_atomic(items, soon()));
  ASSERT_TRUE(provider->erase(key_of(2), soon()));
  const int slot = redis::key_slot("{one}:");
  const size_t from = group.owner(slot);
  const size_t to = (from + 1) % 3;
  group.begin_migration(slot, from, to);
  const auto refused = provider->put_atomic(items, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << refused.error().text();
  EXPECT_GT(provider->stats().read(redis::ReplyError::try_again), 0U);
  group.migrate(slot, from, to);
  EXPECT_TRUE(provider->put_atomic(items, soon()));
  EXPECT_EQ(shown(provider->get(key_of(2), soon())), "two");
}

// The first addresses are dead, and the one connection of a node is busy: the map comes over a connection of its own.
TEST(RedisCluster, LearnsItsSlotsFromAnySeedThatLives) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.pool_size = 1;
  const Endpoint alive = config.endpoints[2];
  config.endpoints = {*Endpoint::parse("redis://127.0.0.1:" + std::to_string(free_port())),
                      *Endpoint::parse("redis://no-such-host.invalid:6379"), alive};
  const auto provider = provider_for(config);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(put(*provider, i));
  const uint64_t before = provider->stats().read(redis::Event::topology_refreshes);
  const size_t from = group.owner(slot_of(1));
  group.migrate(slot_of(1), from, (from + 1) % 3);
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(provider->get(key_of(1), soon()));
    return provider->stats().read(redis::Event::topology_refreshes) > before;
  }));
}

TEST(RedisCluster, AFailoverIsAnotherIncarnationBeforeTheFirstAnswer) {
  ClusterGroup group;
  const auto provider = provider_for(config_of(group));
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  std::atomic<bool> told = false;
  provider->watch_incarnation([&] { told = true; });
  group.node(group.owner(slot_of(1))).pause();
  EXPECT_TRUE(eventually([&] {
    const auto got = provider->get(key_of(1), Deadline::in_ms(100));
    if (!got) return false;
    EXPECT_TRUE(told);
    return true;
  }));
  EXPECT_NE(provider->incarnation(), before);
  EXPECT_GE(
      provider->stats().read(redis::Event::slot_takeovers) + provider->stats().read(redis::Event::identity_changes),
      1u);
  provider->watch_incarnation({});
}

}  // namespace
}  // namespace ragfs::redis_test
