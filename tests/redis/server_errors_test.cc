// What a server answers when it cannot serve, provoked on real servers: each kind is told apart, costs no connection
// that works, and ends when the server can serve again.
#include <vector>

#include "ragfs/providers/redis/key_slot.h"
#include "tests/redis/redis_fixture.h"
#include "tests/redis/redis_groups.h"

namespace ragfs::redis_test {
namespace {

using redis::ReplyError;

// The last error of gets until one is answered; all of them are `unavailable` or `timeout`.
std::string last_error_until_served(RedisProvider& provider, ReplyError wanted) {
  std::string last;
  EXPECT_TRUE(eventually([&] {
    const auto got = provider.get(key_of(1), soon());
    if (got) return true;
    EXPECT_TRUE(got.error().code == ErrorCode::unavailable || got.error().code == ErrorCode::timeout)
        << got.error().text();
    if (provider.stats().read(wanted) > 0 && last.empty()) last = got.error().message;
    return false;
  }));
  return last;
}

TEST(CaseF16, AServerThatLoadsItsDataIsUnavailableUntilItHasThem) {
  RedisServer::Options options;
  // Per key so many microseconds; commands are answered in between.
  options.arguments = {"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"};
  RedisServer server(options);
  const auto provider = provider_for(config_for(server.endpoint()));
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(put(*provider, i));
  ASSERT_EQ(server.cli({"SAVE"}), "OK");
  server.kill();
  server.start_without_waiting();
  const std::string error = last_error_until_served(*provider, ReplyError::loading);
  EXPECT_NE(error.find("LOADING"), std::string::npos) << error;
  EXPECT_GT(provider->stats().read(ReplyError::loading), 0U);
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
}

TEST(CaseF16, AClusterWithoutAnOwnerForASlotIsUnavailable) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_for(group.endpoints()[0]);
  config.mode = redis::Mode::cluster;
  for (const std::string& at : group.endpoints()) config.endpoints.push_back(*Endpoint::parse(at));
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  const int slot = redis::key_slot("t:" + std::string(key_of(1).text()));
  RedisServer& owner = group.node(group.owner(slot));
  owner.cli({"CLUSTER", "DELSLOTS", std::to_string(slot)});
  const auto refused = provider->get(key_of(1), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("CLUSTERDOWN"), std::string::npos) << refused.error().message;
  EXPECT_GT(provider->stats().read(ReplyError::cluster_down), 0U);
  owner.cli({"CLUSTER", "ADDSLOTS", std::to_string(slot)});
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), soon()).has_value(); }));
}

// The replica has lost its primary and says so; the primary answers instead.
TEST(CaseF16, AReplicaWithoutItsPrimaryIsPassedOver) {
  RedisServer::Options primary_options;
  primary_options.arguments = {"--repl-diskless-sync-delay", "0"};
  const RedisServer primary(primary_options);
  RedisServer::Options options;
  options.arguments = {"--replicaof", "127.0.0.1 " + std::to_string(primary.port()), "--replica-serve-stale-data",
                       "no"};
  const RedisServer replica(options);
  ASSERT_TRUE(primary.wait_for({"INFO", "replication"}, "state=online"));
  RedisConfig config = config_for(primary.endpoint());
  config.read_from_replica = true;
  config.verify_interval_ms = 60'000;
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_TRUE(eventually([&] {
    EXPECT_NE(shown(provider->get(key_of(1), soon())).substr(0, 6), "error:");
    return provider->stats().read(redis::Event::replica_reads) > 0;
  }));
  replica.cli({"REPLICAOF", "127.0.0.1", std::to_string(free_port())});
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  EXPECT_GT(provider->stats().read(ReplyError::master_down), 0U);
}

TEST(CaseF16, AFullHouseIsToldApart) {
  RedisServer::Options options;
  options.arguments = {"--maxclients", "2"};
  const RedisServer server(options);
  const auto first = provider_for(config_for(server.endpoint()));
  const auto second = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*first, 1));
  ASSERT_TRUE(put(*second, 1));
  const auto third = put(*provider_for(config_for(server.endpoint())), 1);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::unavailable);
  EXPECT_NE(third.error().message.find("maxclients"), std::string::npos) << third.error().message;
}

}  // namespace
}  // namespace ragfs::redis_test
