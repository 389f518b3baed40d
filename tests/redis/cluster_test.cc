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

TEST(CaseF08, ForcedRedirectsWithOneConnectionAndTwoHundredThreadsEnd) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_of(group);
  config.pool_size = 1;
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
