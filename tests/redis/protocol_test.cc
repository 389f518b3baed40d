// How the provider talks: both versions of the protocol, Valkey, what goes out in how many pieces, what is waited for,
// what is counted.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <vector>

#include "tests/redis/fault_proxy.h"
#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

using Fault = FaultProxy::Fault;

// A number in the text of an INFO section, such as "total_reads_processed:12"; 0 when it is not there.
uint64_t number_in(const std::string& info, const std::string& name) {
  const size_t at = info.find(name);
  return at == std::string::npos ? 0 : std::stoull(info.substr(at + name.size()));
}

uint64_t calls_of(const RedisServer& server, const std::string& command) {
  return number_in(server.cli({"INFO", "commandstats"}), "cmdstat_" + command + ":calls=");
}

void talks(const RedisServer& server, const std::string& version, redis::Credentials credentials = {}) {
  RedisConfig config = config_for(server.endpoint());
  config.credentials = std::move(credentials);
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  const std::vector<CacheKey> keys = {key_of(1), key_of(2)};
  const auto got = provider->get_many(keys, soon());
  EXPECT_EQ(shown(got[0]), value_of(1));
  EXPECT_EQ(shown(got[1]), "(absent)");
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_NE(provider->incarnation(), "");
  const std::string clients =
      server.cli({"--no-auth-warning", "-a", config.credentials.password, "CLIENT", "LIST", "TYPE", "normal"});
  EXPECT_NE(clients.find("resp=" + version), std::string::npos) << clients;
}

TEST(RedisProtocol, SpeaksTheThirdVersionWhereTheServerHasIt) { talks(RedisServer(), "3"); }

// A server that knows no HELLO speaks the second version of the protocol.
TEST(RedisProtocol, SpeaksToAServerWithoutTheThirdVersion) {
  RedisServer::Options options;
  options.arguments = {"--rename-command", "HELLO", ""};
  talks(RedisServer(options), "2");
}

TEST(RedisProtocol, LogsInToAServerWithoutTheThirdVersion) {
  RedisServer::Options options;
  options.arguments = {"--rename-command", "HELLO", "", "--requirepass", "right"};
  talks(RedisServer(options), "2", {"", "right"});
}

TEST(RedisProtocol, SpeaksToValkey) {
  RedisServer::Options options;
  options.program = valkey_server();
  talks(RedisServer(options), "3");
}

TEST(RedisPipeline, OneCallerPaysOneRoundTripACall) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  constexpr uint64_t kCalls = 200;
  const uint64_t before = number_in(server.cli({"INFO", "stats"}), "total_reads_processed:");
  for (uint64_t i = 0; i < kCalls; ++i) ASSERT_TRUE(provider->get(key_of(1), soon()));
  const uint64_t reads = number_in(server.cli({"INFO", "stats"}), "total_reads_processed:") - before;
  EXPECT_GE(reads, kCalls);
  EXPECT_LT(reads, kCalls + 20) << "each call arrives in one piece; the rest is redis-cli's";
}

TEST(RedisPipeline, ManyCallersShareTheBatchesOfOneConnection) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.pool_size = 1;
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  constexpr uint64_t kThreads = 32;
  constexpr uint64_t kCalls = 300;
  const uint64_t before = number_in(server.cli({"INFO", "stats"}), "total_reads_processed:");
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (uint64_t i = 0; i < kCalls; ++i) EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
      });
    }
  }
  const uint64_t reads = number_in(server.cli({"INFO", "stats"}), "total_reads_processed:") - before;
  EXPECT_EQ(provider->stats().read(redis::Event::connects), 1U);
  EXPECT_LT(reads, kThreads * kCalls * 3 / 4) << "for " << kThreads * kCalls << " calls";
}

TEST(RedisPipeline, HasNoThreadOfItsOwn) {
  const auto threads = [] {
    using Entries = std::filesystem::directory_iterator;
    return std::distance(Entries("/proc/self/task"), Entries());
  };
  const RedisServer server;
  const auto before = threads();
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_TRUE(eventually([&] { return threads() == before; })) << "the thread that connects ends";
  EXPECT_TRUE(provider->get(key_of(1), soon()));
  EXPECT_EQ(threads(), before);
}

TEST(RedisBatches, StayWithinTheirMostKeys) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.max_batch_keys = 7;
  const auto provider = provider_for(config);
  std::vector<CacheKey> keys;
  std::vector<PutItem> items;
  for (int i = 0; i < 100; ++i) keys.push_back(key_of(i));
  for (const CacheKey& key : keys) items.push_back({key, {"", "v"}, {}});
  constexpr uint64_t kPieces = 15;  // of 100 keys by 7
  for (const auto& stored : provider->put_many(items, soon())) ASSERT_TRUE(stored);
  EXPECT_EQ(calls_of(server, "ping") - 1, kPieces) << "one ends each pipeline; the first is redis-cli's";
  for (const auto& got : provider->get_many(keys, soon())) EXPECT_EQ(shown(got), "v");
  EXPECT_EQ(calls_of(server, "mget"), kPieces);
  for (const auto& erased : provider->erase_many(keys, soon())) ASSERT_TRUE(erased);
  EXPECT_EQ(calls_of(server, "ping") - 1, 2 * kPieces);
  EXPECT_EQ(calls_of(server, "del"), 100U);
}

TEST(RedisBatches, StayWithinTheirMostBytes) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.max_batch_bytes = 1'024;
  const auto provider = provider_for(config);
  std::vector<CacheKey> keys;
  std::vector<PutItem> items;
  for (int i = 0; i < 100; ++i) keys.push_back(CacheKey("file:n:a:" + std::string(100, 'k') + std::to_string(i)));
  const std::string value(1'000, 'v');
  for (const CacheKey& key : keys) items.push_back({key, {"", value}, {}});
  for (const auto& stored : provider->put_many(items, soon())) ASSERT_TRUE(stored);
  EXPECT_EQ(calls_of(server, "ping") - 1, 100U) << "each is more than the limit";
  for (const auto& got : provider->get_many(keys, soon())) EXPECT_EQ(shown(got), value);
  EXPECT_GE(calls_of(server, "mget"), 10U) << "keys of 120 bytes, in pieces of 1024";
  EXPECT_LE(calls_of(server, "mget"), 13U);
  for (const auto& erased : provider->erase_many(keys, soon())) ASSERT_TRUE(erased);
  EXPECT_GE(calls_of(server, "ping") - 1, 110U);
}

// One replica is asked for and there is none: the write is there, and is not called confirmed.
TEST(RedisWait, AWriteThatTooFewReplicasHaveIsNotConfirmed) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.wait_replicas = 1;
  const auto provider = provider_for(config);
  const auto alone = put(*provider, 1);
  ASSERT_FALSE(alone);
  EXPECT_TRUE(outcome_unknown(alone.error()));
  EXPECT_NE(alone.error().message.find("0 of 1 replicas"), std::string::npos) << alone.error().message;
}

TEST(RedisWait, AWriteIsConfirmedWhenItIsInTheAppendOnlyFile) {
  RedisServer::Options options;
  options.program = valkey_server();
  options.arguments = {"--appendonly", "yes", "--appendfsync", "always"};
  const RedisServer server(options);
  RedisConfig config = config_for(server.endpoint());
  config.wait_aof = true;
  config.wait_timeout_ms = 5'000;
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_EQ(calls_of(server, "waitaof"), 2U);

  config.wait_replicas = 1;
  config.wait_timeout_ms = 200;
  const auto alone = put(*provider_for(config), 2);
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("0 of 1 replicas"), std::string::npos) << alone.error().message;
  server.cli({"CONFIG", "SET", "appendonly", "no"});
  config.wait_replicas = 0;
  const auto no_file = put(*provider_for(config), 3);
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message.find("appendonly"), std::string::npos) << no_file.error().message;
}

double metric(const RedisProvider& provider, std::string_view name) {
  const std::vector<ProviderMetric> metrics = provider.metrics();
  const auto found = std::ranges::find_if(metrics, [&](const ProviderMetric& at) { return at.name == name; });
  return found == metrics.end() ? -1 : found->value;
}

TEST(RedisMetrics, CountEachCommand) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  (void)provider->get(key_of(1), soon());
  (void)provider->get(key_of(2), soon());
  ASSERT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_EQ(metric(*provider, "get_calls_total"), 2);
  EXPECT_EQ(metric(*provider, "put_calls_total"), 1);
  EXPECT_EQ(metric(*provider, "erase_calls_total"), 1);
  EXPECT_EQ(metric(*provider, "get_timeouts_total"), 0);
  EXPECT_GT(metric(*provider, "get_p50_us"), 0);
  EXPECT_GE(metric(*provider, "get_p99_us"), metric(*provider, "get_p50_us"));
  EXPECT_EQ(metric(*provider, "connections"), 1);
  EXPECT_EQ(metric(*provider, "pool_waits_total"), 1) << "the first call waited for the connection";
  EXPECT_GT(metric(*provider, "pool_wait_ns_total"), 0);
}

TEST(RedisMetrics, CountTimeoutsAndReconnects) {
  const RedisServer server;
  FaultProxy proxy(server.port());
  const auto provider = provider_for(config_for(proxy.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  proxy.set(Fault::silence);
  EXPECT_FALSE(provider->get(key_of(1), Deadline::in_ms(30)));
  proxy.set(Fault::none);
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), soon()).has_value(); }));
  EXPECT_EQ(metric(*provider, "get_timeouts_total"), 1);
  EXPECT_GE(metric(*provider, "get_failures_total"), 1);
  EXPECT_EQ(metric(*provider, "connections_lost_total"), 1);
  EXPECT_EQ(metric(*provider, "connects_total"), 2);
}

TEST(RedisMetrics, TellWhatTheServerEvictedAndExpired) {
  RedisServer::Options options;
  options.arguments = {"--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"};
  const RedisServer server(options);
  RedisConfig config = config_for(server.endpoint());
  config.verify_interval_ms = 1;
  const auto provider = provider_for(config);
  ASSERT_TRUE(provider->put(key_of(0), {"", "v"}, {.ttl_ms = 1}, soon()));
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(shown(provider->get(key_of(0), soon())).find("error"), std::string::npos);
    return metric(*provider, "server_expired_keys") == 1;
  }));
  const std::string value(100'000, 'v');
  for (int i = 1; i < 60; ++i) ASSERT_TRUE(provider->put(key_of(i), {"", value}, {}, soon()));
  EXPECT_TRUE(eventually([&] {
    (void)provider->get(key_of(1), soon());
    return metric(*provider, "server_evicted_keys") > 0;
  }));
}

class RedisTimedOutWrites : public ::testing::TestWithParam<Fault> {};

// Its first copy may be there, or come there later: on no other connection it is sent a second time.
TEST_P(RedisTimedOutWrites, AreNeverSentAgain) {
  const RedisServer server;
  FaultProxy proxy(server.port());
  RedisConfig config = config_for(proxy.endpoint());
  config.pool_size = 4;
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  const uint64_t before = calls_of(server, "set");
  proxy.set(GetParam(), 1, 200);
  const auto unknown = put(*provider, 2, Deadline::in_ms(50));
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(outcome_unknown(unknown.error()));
  proxy.set(Fault::none);
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), soon()).has_value(); }));
  EXPECT_EQ(calls_of(server, "set"), before + 1);
}

INSTANTIATE_TEST_SUITE_P(All, RedisTimedOutWrites, ::testing::Values(Fault::delay, Fault::silence, Fault::swallow));

}  // namespace
}  // namespace ragfs::redis_test
