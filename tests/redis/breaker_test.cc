// The breaker over Redis that cannot be reached, in each way: no call takes longer than its deadline, the breaker
// opens, and a probe closes it when Redis answers again.
#include <algorithm>
#include <memory>

#include "ragfs/cache/guarded_provider.h"
#include "tests/redis/fault_proxy.h"
#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

using Fault = FaultProxy::Fault;

constexpr int64_t kTimeout_ms = 50;
constexpr int64_t kMost_ms = 400;  // of a call, on a busy machine

std::unique_ptr<GuardedProvider> guarded(RedisConfig config) {
  const GuardConfig guard{.operation_timeout_ms = kTimeout_ms, .first_pause_ms = 20, .max_pause_ms = 100};
  return std::make_unique<GuardedProvider>(std::shared_ptr<CacheProvider>(provider_for(std::move(config))), guard);
}

// The longest of twenty gets, in ms.
int64_t longest_get_ms(GuardedProvider& provider) {
  int64_t longest_ns = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t start_ns = Clock::system().monotonic_ns();
    EXPECT_FALSE(provider.get(key_of(1), Deadline::never()));
    longest_ns = std::max(longest_ns, Clock::system().monotonic_ns() - start_ns);
  }
  return longest_ns / 1'000'000;
}

void opens_within_deadlines(RedisConfig config) {
  const auto provider = guarded(std::move(config));
  EXPECT_LT(longest_get_ms(*provider), kMost_ms);
  EXPECT_NE(provider->state(), BreakerState::closed);
  EXPECT_EQ(provider->counts().opened, 1U);
  EXPECT_GT(provider->counts().shed, 0U) << "with the breaker open no call goes out";
}

TEST(RedisBreaker, OpensOverABlackHole) {
  const BlackHole hole;
  opens_within_deadlines(config_for("redis://127.0.0.1:" + std::to_string(hole.port())));
}

TEST(RedisBreaker, OpensOverAServerThatIsNoRedis) {
  const ParrotServer http("HTTP/1.1 400 Bad Request\r\n\r\n");
  opens_within_deadlines(config_for("redis://127.0.0.1:" + std::to_string(http.port())));
}

TEST(RedisBreaker, OpensOverANameThatIsNotFound) {
  opens_within_deadlines(config_for("redis://no-such-host.invalid:6379"));
}

TEST(RedisBreaker, OpensOverAPortThatSpeaksNoTls) {
  const RedisServer plain;
  opens_within_deadlines(config_for("rediss://127.0.0.1:" + std::to_string(plain.port())));
}

TEST(RedisBreaker, OpensOverATlsPortThatIsSpokenToPlainly) {
  RedisServer::Options options;
  options.tls = true;
  const RedisServer tls(options);
  opens_within_deadlines(config_for("redis://127.0.0.1:" + std::to_string(tls.port())));
}

class RedisBreakerProxy : public ::testing::TestWithParam<Fault> {};

TEST_P(RedisBreakerProxy, OpensAndAProbeClosesIt) {
  const RedisServer server;
  FaultProxy proxy(server.port());
  const auto provider = guarded(config_for(proxy.endpoint()));
  ASSERT_TRUE(put(provider->provider(), 1));
  EXPECT_TRUE(provider->get(key_of(1), Deadline::never()));
  proxy.set(GetParam());

  EXPECT_LT(longest_get_ms(*provider), kMost_ms);
  EXPECT_EQ(provider->counts().opened, 1U);
  EXPECT_GT(provider->counts().shed, 0U);
  proxy.set(Fault::none);
  EXPECT_TRUE(eventually([&] { return provider->get(key_of(1), Deadline::never()).has_value(); }));
  EXPECT_EQ(provider->state(), BreakerState::closed);
  EXPECT_GT(provider->counts().probes, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, RedisBreakerProxy, ::testing::Values(Fault::silence, Fault::refuse));

}  // namespace
}  // namespace ragfs::redis_test
