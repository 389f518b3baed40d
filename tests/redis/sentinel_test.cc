// The redis provider behind Sentinels: discovery and failover.
#include "tests/redis/redis_fixture.h"
#include "tests/redis/redis_groups.h"

namespace ragfs::redis_test {
namespace {

RedisConfig config_of(const SentinelGroup& group) {
  RedisConfig config = config_for(group.endpoints()[0]);
  config.mode = redis::Mode::sentinel;
  config.master_name = SentinelGroup::kName;
  config.endpoints.clear();
  for (const std::string& at : group.endpoints()) config.endpoints.push_back(*Endpoint::parse(at));
  return config;
}

TEST(RedisSentinel, FindsThePrimaryAndSaysWhatItDoesNotFind) {
  const SentinelGroup group;
  RedisConfig config = config_of(group);
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  config.master_name = "nobody";
  const auto unknown = provider_for(config)->get(key_of(1), soon());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("does not know redis.master_name \"nobody\""), std::string::npos)
      << unknown.error().message;
}

// The promoted replica lacks what was written last, and what was erased last is there again.
TEST(CaseF13, AFailoverToAReplicaThatLacksOurErasesIsAnotherIncarnation) {
  SentinelGroup group;
  const auto provider = provider_for(config_of(group));
  ASSERT_TRUE(put(*provider, 1));
  ASSERT_TRUE(group.replica().wait_for({"EXISTS", "t:" + std::string(key_of(1).text())}, "1"));
  const std::string before = provider->incarnation();
  group.replica().cli({"DEBUG", "SLEEP", "0"});
  group.replica().pause();  // replication is blocked
  ASSERT_TRUE(provider->erase(key_of(1), soon()));
  group.primary().pause();
  group.replica().resume();
  std::atomic<bool> told = false;
  provider->watch_incarnation([&] { told = true; });
  EXPECT_TRUE(eventually([&] {
    const auto got = provider->get(key_of(1), Deadline::in_ms(200));
    if (!got) return false;
    // Whoever gets an answer of the new primary has been told before.
    EXPECT_TRUE(told);
    return true;
  }));
  EXPECT_NE(provider->incarnation(), before);
  EXPECT_EQ(group.primary_port(), std::to_string(group.replica().port()));
  provider->watch_incarnation({});
}

// An orderly failover: the old primary lives on as a replica.
TEST(RedisSentinel, AnOldPrimaryThatLivesOnAsAReplicaIsLeft) {
  SentinelGroup group;
  const auto provider = provider_for(config_of(group));
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  ASSERT_EQ(group.sentinel(0).cli({"SENTINEL", "FAILOVER", SentinelGroup::kName}), "OK");
  ASSERT_TRUE(group.primary().wait_for({"ROLE"}, "slave"));
  EXPECT_TRUE(eventually([&] { return put(*provider, 2, Deadline::in_ms(500)).has_value(); }));
  EXPECT_EQ(group.replica().cli({"EXISTS", "t:" + std::string(key_of(2).text())}), "1");
  EXPECT_NE(provider->incarnation(), before);
}

TEST(CaseF04, AllServersAreRestartedWithAnotherPrimary) {
  SentinelGroup group;
  const auto provider = provider_for(config_of(group));
  ASSERT_TRUE(put(*provider, 1));
  group.primary().kill();
  EXPECT_TRUE(eventually([&] { return put(*provider, 2, Deadline::in_ms(200)).has_value(); }));
  EXPECT_EQ(group.primary_port(), std::to_string(group.replica().port()));
  group.primary().start();
  EXPECT_TRUE(group.has_one_primary()) << group.story();
  EXPECT_TRUE(eventually([&] { return put(*provider, 3, Deadline::in_ms(500)).has_value(); })) << group.story();
}

}  // namespace
}  // namespace ragfs::redis_test
