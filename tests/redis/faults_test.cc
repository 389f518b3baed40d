// What networks and proxies do to replies: nobody gets another key's value, connections are replaced, others go on.
#include <atomic>
#include <vector>

#include "tests/redis/fault_proxy.h"
#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

using Fault = FaultProxy::Fault;

// A server, a proxy before it, and a provider with a pool of so many connections that knows the proxy alone.
struct BehindProxy {
  explicit BehindProxy(int64_t pool_size) {
    RedisConfig config = config_for(proxy.endpoint());
    config.pool_size = pool_size;
    provider = provider_for(config);
  }
  const RedisServer server;
  FaultProxy proxy{server.port()};
  decltype(provider_for(RedisConfig())) provider;
};

// Many readers and some writers, of keys whose value is known, for `calls` each. Writers write what is there.
struct Tally {
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
  std::atomic<int> late{0};
  std::atomic<int> failed{0};
};

void hammer(RedisProvider& provider, int threads, int calls, Tally& tally) {
  constexpr int kDeadline_ms = 40;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < calls; ++i) {
        const int k = (t * 13 + i) % 50;
        const int64_t start_ns = Clock::system().monotonic_ns();
        if (i % 7 == 0) {
          (void)put(provider, k, Deadline::in_ms(kDeadline_ms));
        } else {
          const auto got = provider.get(key_of(k), Deadline::in_ms(kDeadline_ms));
          if (!got) ++tally.failed;
          if (got && got->has_value()) ++(shown(got) == value_of(k) ? tally.right : tally.wrong);
        }
        if (Clock::system().monotonic_ns() - start_ns > int64_t{1'000} * 1'000'000) ++tally.late;
      }
    });
  }
}

class RedisFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(RedisFaults, NobodyGetsAnotherKeysValueAndOthersGoOn) {
  BehindProxy behind(2);
  FaultProxy& proxy = behind.proxy;
  const auto& provider = behind.provider;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(put(*provider, i));
  const uint64_t before = proxy.accepted();
  proxy.set(GetParam(), 37, 60);
  Tally tally;
  hammer(*provider, 8, 150, tally);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_EQ(tally.late, 0);
  EXPECT_GT(proxy.accepted(), before) << "no connection was replaced";
  if (GetParam() != Fault::delay) {
    EXPECT_GT(tally.right, 0);
  }
  proxy.set(Fault::none);
  EXPECT_TRUE(eventually([&] { return shown(provider->get(key_of(1), soon())) == value_of(1); }));
}

INSTANTIATE_TEST_SUITE_P(All, RedisFaults, ::testing::Values(Fault::delay, Fault::swallow, Fault::cut, Fault::reorder));

// F01: the reply of k1 comes after its caller has gone; k2 on the same pool must not get it.
TEST(CaseF01, AReplyThatComesTooLateIsNobodys) {
  BehindProxy behind(1);
  FaultProxy& proxy = behind.proxy;
  const auto& provider = behind.provider;
  ASSERT_TRUE(put(*provider, 1));
  ASSERT_TRUE(put(*provider, 2));
  proxy.set(Fault::delay, 1, 100);
  const auto late = provider->get(key_of(1), Deadline::in_ms(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  proxy.set(Fault::none);
  EXPECT_EQ(shown(provider->get(key_of(2), soon())), value_of(2));
  EXPECT_EQ(provider->stats().read(redis::Event::connections_lost), 1u);
}

// F02: one reply never comes; those behind it on the connection end well, on another one.
TEST(CaseF02, OneSwallowedReplyDoesNotHoldTheOthers) {
  BehindProxy behind(1);
  FaultProxy& proxy = behind.proxy;
  const auto& provider = behind.provider;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(put(*provider, i));
  proxy.set(Fault::silence);
  const auto never = provider->get(key_of(1), Deadline::in_ms(30));
  EXPECT_FALSE(never);
  proxy.set(Fault::none);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 20; ++t) {
      threads.emplace_back([&, t] {
        if (shown(provider->get(key_of(t % 10), soon())) != value_of(t % 10)) ++wrong;
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

// A put whose answer was lost is sent once: the server has seen one SET.
TEST(RedisFaultsOfWrites, APutIsNeverSentAgain) {
  const RedisServer server;
  FaultProxy proxy(server.port());
  const auto provider = provider_for(config_for(proxy.endpoint()));
  ASSERT_TRUE(put(*provider, 1));
  const auto calls_of_set = [&] {
    const std::string stats = server.cli({"INFO", "commandstats"});
    const size_t at = stats.find("cmdstat_set:calls=");
    return at == std::string::npos ? 0 : std::stoi(stats.substr(at + 18));
  };
  const int before = calls_of_set();
  proxy.set(Fault::cut, 1);
  const auto unknown = put(*provider, 2);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(outcome_unknown(unknown.error()));
  proxy.set(Fault::none);
  EXPECT_EQ(calls_of_set(), before + 1);
}

TEST(RedisUnreachable, EveryWayOfNotAnsweringEndsWithinTheDeadline) {
  const RedisServer server;
  FaultProxy proxy(server.port());
  const auto timed = [](const std::string& endpoint) {
    RedisConfig config = config_for(endpoint);
    config.connect_timeout_ms = 300;
    const auto provider = provider_for(config);
    const int64_t start_ns = Clock::system().monotonic_ns();
    const auto got = provider->get(key_of(1), Deadline::in_ms(100));
    EXPECT_FALSE(got) << endpoint;
    if (!got) {
      EXPECT_FALSE(got.error().message.empty());
    }
    return (Clock::system().monotonic_ns() - start_ns) / 1'000'000;
  };
  const BlackHole hole;
  EXPECT_LT(timed("redis://127.0.0.1:" + std::to_string(hole.port())), 600);
  EXPECT_LT(timed("redis://no-such-host.invalid:6379"), 600);
  proxy.set(Fault::silence);
  EXPECT_LT(timed(proxy.endpoint()), 600);
  EXPECT_LT(timed(proxy.endpoint(true)), 600);
  proxy.set(Fault::refuse);
  EXPECT_LT(timed(proxy.endpoint()), 600);
}

RedisConfig tls_config(const RedisServer& server) {
  RedisConfig config = config_for(server.endpoint());
  config.tls.ca_file = server.dir() / "ca.crt";
  return config;
}

TEST(CaseF14, TlsAndPlainMixedUpEndInAnErrorThatSaysSo) {
  const RedisServer plain;
  RedisServer::Options options;
  options.tls = true;
  const RedisServer tls(options);
  EXPECT_TRUE(put(*provider_for(tls_config(tls)), 1));

  RedisConfig config = tls_config(tls);
  config.endpoints = {*Endpoint::parse("rediss://127.0.0.1:" + std::to_string(plain.port()))};
  const auto tls_to_plain = put(*provider_for(config), 1);
  ASSERT_FALSE(tls_to_plain);
  EXPECT_NE(tls_to_plain.error().message.find("TLS handshake"), std::string::npos) << tls_to_plain.error().message;

  config.endpoints = {*Endpoint::parse("redis://127.0.0.1:" + std::to_string(tls.port()))};
  EXPECT_FALSE(put(*provider_for(config), 1));
}

TEST(CaseF14, ACertificateThatIsNotTheServersIsRefused) {
  RedisServer::Options options;
  options.tls = true;
  const RedisServer server(options);
  RedisConfig config = tls_config(server);
  config.tls.ca_file.clear();  // the machine's authorities do not know the test's
  const auto unknown = put(*provider_for(config), 1);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("certificate is refused"), std::string::npos) << unknown.error().message;
  config.tls.skip_verify = true;
  EXPECT_TRUE(put(*provider_for(config), 1));
  config = tls_config(server);
  config.tls.server_name = "example.org";
  const auto other_name = put(*provider_for(config), 1);
  ASSERT_FALSE(other_name);
  EXPECT_NE(other_name.error().message.find("certificate is refused"), std::string::npos) << other_name.error().message;
  config.tls.ca_file = server.dir() / "none.crt";
  const auto no_file = RedisProvider::create(config);
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message.find("tls_ca_file"), std::string::npos);
}

}  // namespace
}  // namespace ragfs::redis_test
