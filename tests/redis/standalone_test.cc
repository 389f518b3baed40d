// The redis provider over one real server.
#include <atomic>
#include <vector>

#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

TEST(RedisStandalone, StoresGivesAndErases) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), "(absent)");
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  ASSERT_TRUE(provider->put(key_of(1), {"head", "tail"}, {}, soon()));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), "headtail");
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), "(absent)");
}

TEST(RedisStandalone, ServesTheSameOverAUnixSocket) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.unix_endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
}

TEST(RedisStandalone, KeepsEmptyAndLargeValues) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{12'000}, size_t{12'400}, size_t{40'000}, size_t{8} << 20}) {
    std::string value(size, 'v');
    for (size_t i = 0; i < size; i += 997) value[i] = static_cast<char>(i);
    ASSERT_TRUE(provider->put(key_of(1), {"", value}, {}, soon())) << size;
    EXPECT_EQ(shown(provider->get(key_of(1), soon())), value) << size;
  }
}

TEST(RedisStandalone, AnObjectExpires) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(provider->put(key_of(1), {"", "v"}, {.ttl_ms = 1}, soon()));
  EXPECT_TRUE(eventually([&] { return shown(provider->get(key_of(1), soon())) == "(absent)"; }));
  ASSERT_TRUE(provider->put(key_of(2), {"", "v"}, {.ttl_ms = 100'000}, soon()));
  const int ttl_ms = std::stoi(server.cli({"PTTL", "t:" + std::string(key_of(2).text())}));
  EXPECT_GT(ttl_ms, 50'000);
  EXPECT_LE(ttl_ms, 100'000);
}

TEST(RedisStandalone, BatchesKeepOrderAndLimits) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.max_batch_keys = 7;
  config.max_batch_bytes = 1'024;
  const auto provider = provider_for(config);
  constexpr int kCount = 100;
  std::vector<std::string> values;
  std::vector<CacheKey> keys;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(value_of(i));
    keys.push_back(key_of(i));
  }
  std::vector<PutItem> items;
  for (int i = 0; i < kCount; i += 2) {
    items.push_back({keys[static_cast<size_t>(i)], {"", values[static_cast<size_t>(i)]}, {}});
  }
  for (const auto& stored : provider->put_many(items, soon())) ASSERT_TRUE(stored) << stored.error().text();
  const auto got = provider->get_many(keys, soon());
  ASSERT_EQ(got.size(), keys.size());
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(shown(got[static_cast<size_t>(i)]), i % 2 == 0 ? value_of(i) : "(absent)");
  }
  for (const auto& erased : provider->erase_many(keys, soon())) ASSERT_TRUE(erased) << erased.error().text();
  for (const auto& gone : provider->get_many(keys, soon())) EXPECT_EQ(shown(gone), "(absent)");
}

TEST(RedisStandalone, PutAtomicStoresAllOrNothing) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  const std::vector<PutItem> items = {{key_of(1), {"", "one"}, {}}, {key_of(2), {"", "two"}, {.ttl_ms = 60'000}}};
  ASSERT_TRUE(provider->put_atomic(items, soon()));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), "one");
  EXPECT_EQ(shown(provider->get(key_of(2), soon())), "two");
  const std::vector<PutItem> many(9, items[0]);
  const auto refused = provider->put_atomic(many, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
}

TEST(RedisStandalone, AFullServerThatEvictsNothingIsFull) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  server.cli({"CONFIG", "SET", "maxmemory", "1"});
  const auto refused = put(*provider, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::full);
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  EXPECT_EQ(provider->stats().read(redis::ReplyError::oom), 1u);
}

TEST(RedisStandalone, ManyThreadsShareFewConnections) {
  const RedisServer server;
  RedisConfig config = config_for(server.endpoint());
  config.pool_size = 2;
  const auto provider = provider_for(config);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put(*provider, i));
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 200; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const int k = (t * 7 + i) % 100;
          if (shown(provider->get(key_of(k), soon())) != value_of(k)) ++wrong;
          if (i % 10 == 0 && !put(*provider, k)) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(provider->stats().read(redis::Event::connects), 2u);
}

TEST(CaseF17, RedisIsDownAtStartAndJoinsWhenItIsUp) {
  auto server = std::make_unique<RedisServer>();
  const RedisConfig config = config_for(server->endpoint());
  server->kill();
  const auto provider = provider_for(config);
  const auto down = provider->health(Deadline::in_ms(500));
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, ErrorCode::unavailable);
  EXPECT_NE(down.error().message.find(config.endpoints[0].text()), std::string::npos) << down.error().message;
  EXPECT_EQ(provider->incarnation(), "");
  server->start();
  EXPECT_TRUE(eventually([&] { return provider->health(soon()).has_value(); }));
  EXPECT_TRUE(put(*provider, 1));
  EXPECT_NE(provider->incarnation(), "");
}

TEST(CaseF07, AStoppedServerCostsEachCallItsDeadlineAndNoMore) {
  RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  server.pause();
  for (int i = 0; i < 3; ++i) {
    const int64_t start_ns = Clock::system().monotonic_ns();
    const auto got = provider->get(key_of(1), Deadline::in_ms(50));
    const int64_t took_ms = (Clock::system().monotonic_ns() - start_ns) / 1'000'000;
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::timeout);
    EXPECT_LT(took_ms, 500);
  }
  server.resume();
  EXPECT_TRUE(eventually([&] { return shown(provider->get(key_of(1), soon())) == value_of(1); }));
}

TEST(RedisIncarnation, IsAnotherBeforeTheFirstAnswerOfARestartedServer) {
  RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  std::atomic<int> told{0};
  provider->watch_incarnation([&] { ++told; });
  server.kill();
  server.start();
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), soon()).has_value(); }));
  EXPECT_EQ(told, 1);
  EXPECT_NE(provider->incarnation(), before);
  provider->watch_incarnation({});
}

TEST(RedisIncarnation, StaysWhileTheSameServerAnswersOnNewConnections) {
  const RedisServer server;
  const auto provider = provider_for(config_for(server.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  server.cli({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), soon()).has_value(); }));
  EXPECT_EQ(provider->incarnation(), before);
  EXPECT_GE(provider->stats().read(redis::Event::connects), 2u);
}

TEST(RedisIncarnation, AServerThatBecomesAReplicaIsLeft) {
  const RedisServer server;
  const RedisServer other;
  RedisConfig config = config_for(server.endpoint());
  config.verify_interval_ms = 1;
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  server.cli({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  const auto refused = put(*provider, 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  const auto got = provider->get(key_of(1), soon());
  ASSERT_FALSE(got);
  EXPECT_NE(got.error().message.find("replica"), std::string::npos) << got.error().message;
  const std::string before = provider->incarnation();
  server.cli({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(eventually([&] { return put(*provider, 2).has_value(); }));
  EXPECT_NE(provider->incarnation(), before);
}

// Two servers are named and change their roles: READONLY drops the connection, and the other is found.
TEST(RedisStandalone, AServerThatRefusesWritesIsLeftForTheOtherOne) {
  const RedisServer server;
  const RedisServer other;
  RedisConfig config = config_for(server.endpoint());
  config.endpoints.push_back(*Endpoint::parse(other.endpoint()));
  config.verify_interval_ms = 60'000;  // so that READONLY is what shows it
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  server.cli({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
  const auto refused = put(*provider, 2);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("READONLY"), std::string::npos) << refused.error().message;
  EXPECT_EQ(provider->stats().read(redis::ReplyError::read_only), 1U);
  EXPECT_TRUE(put(*provider, 2));
  EXPECT_EQ(other.cli({"EXISTS", "t:" + std::string(key_of(2).text())}), "1");
  EXPECT_NE(provider->incarnation(), before);
}

TEST(CaseF16, ErrorsOfALogInSayWhatToDo) {
  RedisServer::Options options;
  options.arguments = {"--requirepass", "right"};
  const RedisServer server(options);
  RedisConfig config = config_for(server.endpoint());
  const auto unknown = provider_for(config)->get(key_of(1), soon());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("redis.password_env"), std::string::npos) << unknown.error().message;
  config.credentials.password = "wrong";
  const auto wrong = provider_for(config)->get(key_of(1), soon());
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("WRONGPASS"), std::string::npos) << wrong.error().message;
  config.credentials.password = "right";
  EXPECT_TRUE(put(*provider_for(config), 1));
}

TEST(RedisAcl, AUserWithTheDocumentedRightsDoes) {
  const RedisServer server;
  server.cli({"ACL", "SETUSER", "cache", "on", ">pw", "~t:*", "+get", "+set", "+del", "+mget", "+multi", "+exec",
              "+ping", "+info", "+role"});
  RedisConfig config = config_for(server.endpoint());
  config.credentials = {"cache", "pw"};
  const auto provider = provider_for(config);
  EXPECT_TRUE(put(*provider, 1));
  EXPECT_EQ(shown(provider->get(key_of(1), soon())), value_of(1));
  EXPECT_TRUE(provider->erase(key_of(1), soon()));
  const std::string before = provider->incarnation();
  server.cli({"CLIENT", "KILL", "USER", "cache"});
  EXPECT_TRUE(eventually([&] { return put(*provider, 1).has_value(); }));
  EXPECT_EQ(provider->incarnation(), before);
}

class RedisAclRefusals : public ::testing::TestWithParam<const char*> {};

TEST_P(RedisAclRefusals, WhereInfoOrRoleIsRefusedEveryReconnectCounts) {
  const RedisServer server;
  server.cli({"ACL", "SETUSER", "cache", "on", ">pw", "~t:*", "+get", "+set", "+del", "+ping", GetParam()});
  RedisConfig config = config_for(server.endpoint());
  config.credentials = {"cache", "pw"};
  const auto provider = provider_for(config);
  ASSERT_TRUE(put(*provider, 1));
  const std::string before = provider->incarnation();
  server.cli({"CLIENT", "KILL", "USER", "cache"});
  EXPECT_TRUE(eventually([&] { return put(*provider, 1).has_value(); }));
  EXPECT_NE(provider->incarnation(), before);
}

INSTANTIATE_TEST_SUITE_P(Allowed, RedisAclRefusals, ::testing::Values("+ping", "+info", "+role"));

TEST(RedisAcl, ARefusedKeyIsToldApart) {
  const RedisServer server;
  server.cli({"ACL", "SETUSER", "cache", "on", ">pw", "~other:*", "+@all"});
  RedisConfig config = config_for(server.endpoint());
  config.credentials = {"cache", "pw"};
  const auto provider = provider_for(config);
  const auto refused = put(*provider, 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("docs/redis.md"), std::string::npos) << refused.error().message;
  EXPECT_EQ(provider->stats().read(redis::ReplyError::no_perm), 1u);
}

TEST(RedisReplica, ReadsFromAReplicaWhenToldTo) {
  RedisServer::Options primary_options;
  primary_options.arguments = {"--repl-diskless-sync-delay", "0"};
  const RedisServer primary(primary_options);
  RedisServer::Options options;
  options.arguments = {"--replicaof", "127.0.0.1 " + std::to_string(primary.port())};
  const RedisServer replica(options);
  ASSERT_TRUE(primary.wait_for({"INFO", "replication"}, "state=online"));
  RedisConfig config = config_for(primary.endpoint());
  config.read_from_replica = true;
  config.wait_replicas = 1;
  config.wait_timeout_ms = 2'000;
  const auto provider = provider_for(config);
  EXPECT_TRUE(provider->capabilities().may_resurrect);
  ASSERT_TRUE(put(*provider, 1));
  EXPECT_TRUE(eventually([&] {
    return shown(provider->get(key_of(1), soon())) == value_of(1) &&
           provider->stats().read(redis::Event::replica_reads) > 0;
  }));
}

TEST(RedisDoctor, WarnsOfAServerThatIsNoCache) {
  RedisServer::Options options;
  options.arguments = {"--appendonly", "yes", "--save", "60 1"};
  const RedisServer server(options);
  const auto provider = provider_for(config_for(server.endpoint()));
  std::string all;
  for (const std::string& warning : provider->warnings(soon())) all += warning + "\n";
  EXPECT_NE(all.find("no maxmemory"), std::string::npos) << all;
  EXPECT_NE(all.find("append-only"), std::string::npos) << all;
  EXPECT_NE(all.find("snapshots"), std::string::npos) << all;
  server.cli({"CONFIG", "SET", "maxmemory", "100mb"});
  all.clear();
  for (const std::string& warning : provider->warnings(soon())) all += warning + "\n";
  EXPECT_NE(all.find("noeviction"), std::string::npos) << all;
}

}  // namespace
}  // namespace ragfs::redis_test
