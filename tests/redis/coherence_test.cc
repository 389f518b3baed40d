// The property on the real code over real servers: threads read and mutate through the cache while the servers are
// stopped, killed, failed over, resharded, emptied and filled up. No answer may be one that the backend did not hold
// while the call ran, and the cache answers again within seconds. With and without a near tier.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "ragfs/cli/stress/runner.h"
#include "ragfs/providers/redis/key_slot.h"
#include "tests/redis/redis_fixture.h"
#include "tests/redis/redis_groups.h"

namespace ragfs::redis_test {
namespace {

using std::chrono::milliseconds;
using stress::Stack;

// What is done takes its time in another process; how long readers meet it is the test's measure.
void let_run(int64_t ms) { std::this_thread::sleep_for(milliseconds(ms)); }

uint64_t hits_of(const Stack& stack) {
  uint64_t sum = 0;
  for (const CacheCounter at : {CacheCounter::file_hit, CacheCounter::directory_hit, CacheCounter::stat_hit}) {
    sum += stack.count(at);
  }
  return sum;
}

uint64_t lookups_of(const Stack& stack) {
  uint64_t sum = hits_of(stack);
  for (const CacheCounter at : {CacheCounter::file_miss, CacheCounter::directory_miss, CacheCounter::stat_miss}) {
    sum += stack.count(at);
  }
  return sum;
}

// Hits per look-up over the next so many milliseconds.
double hit_rate(const Stack& stack, int64_t ms = 300) {
  const uint64_t hits = hits_of(stack);
  const uint64_t lookups = lookups_of(stack);
  let_run(ms);
  const uint64_t asked = lookups_of(stack) - lookups;
  return asked == 0 ? 0 : static_cast<double>(hits_of(stack) - hits) / static_cast<double>(asked);
}

class RedisCoherence : public ::testing::TestWithParam<bool> {
 protected:
  // Runs the workload over `config` and `harm` beside it. `recovers`: the hit rate is to be half of what it was before,
  // within five seconds.
  void run(RedisConfig config, const std::function<void(Stack&)>& harm, bool recovers = true) {
    stress::StressSetting setting = stress::setting_over(provider_for(std::move(config)));
    setting.name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    setting.near_bytes = GetParam() ? uint64_t{1} << 20 : 0;
    setting.life = true;
    setting.mount.use.process_local = true;
    setting.provider_faults = {};  // they are real here
    setting.domain.guard = {.operation_timeout_ms = 50, .concurrency = 16};
    setting.workload.cold_files = 300;
    setting.workload.mutations_per_mille = 100;
    stress::StressConfig run;
    run.seed = std::random_device{}();
    run.operations = 0;
    run.threads = 6;
    run.deadline = Deadline::in_ms(120'000);
    run.beside = [&](Stack& stack) {
      let_run(500);
      const double before = hit_rate(stack);
      harm(stack);
      double after = 0;
      const int64_t start_ns = Clock::system().monotonic_ns();
      const auto age_ms = [&] { return (Clock::system().monotonic_ns() - start_ns) / 1'000'000; };
      while (recovers && (after = hit_rate(stack)) < before / 2 && age_ms() < 10'000) {
      }
      fmt::print("  hit rate {:.2f} before, {:.2f} again {} ms after\n", before, after, age_ms());
      EXPECT_GT(before, 0.05) << "the cache hardly answers, so little is tested";
      EXPECT_TRUE(!recovers || age_ms() < 5'000) << "from " << before << " to " << after;
    };
    const auto report = stress::run_stress(setting, run);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->passed()) << report->text();
    fmt::print("  {}\n", report->text());
    new_epochs_ = report->new_epochs;
  }

  uint64_t new_epochs_ = 0;
};

TEST_P(RedisCoherence, ServerStopsAndGoesOn) {
  RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 5; ++i) {
      server.pause();
      let_run(200);
      server.resume();
      let_run(200);
    }
  });
}

TEST_P(RedisCoherence, ServerIsKilledAndStartsEmpty) {
  RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 3; ++i) {
      server.kill();
      let_run(100);
      server.start();
      let_run(600);
    }
  });
  EXPECT_GE(new_epochs_, 3U);
}

// The snapshot is older than what was erased after it.
TEST_P(RedisCoherence, ServerIsKilledAndComesBackWithAnOldSnapshot) {
  RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 3; ++i) {
      server.cli({"SAVE"});
      let_run(300);
      server.kill();
      server.start();
      let_run(600);
    }
  });
  EXPECT_GE(new_epochs_, 3U);
}

TEST_P(RedisCoherence, ServerIsKilledAndReplaysItsAppendOnlyFile) {
  RedisServer::Options options;
  options.arguments = {"--appendonly", "yes"};
  RedisServer server(options);
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 2; ++i) {
      server.kill();
      server.start();
      let_run(600);
    }
  });
  EXPECT_GE(new_epochs_, 2U);
}

// The promoted replica lacks what was erased while it did not run; the old primary comes back and is demoted.
TEST_P(RedisCoherence, FailoverToAReplicaThatLacksOurErases) {
  SentinelGroup group;
  RedisConfig config = config_for(group.endpoints()[0]);
  config.mode = redis::Mode::sentinel;
  config.master_name = SentinelGroup::kName;
  config.endpoints.clear();
  for (const std::string& at : group.endpoints()) config.endpoints.push_back(*Endpoint::parse(at));
  run(std::move(config), [&](Stack& stack) {
    const uint64_t epoch = stack.domain().epoch();
    group.replica().pause();
    let_run(300);
    group.primary().pause();
    group.replica().resume();
    EXPECT_TRUE(eventually([&] { return group.primary_port() == std::to_string(group.replica().port()); }));
    EXPECT_TRUE(eventually([&] { return !stack.domain().apart() && stack.domain().epoch() != epoch; }));
    group.primary().resume();
    let_run(500);
  });
}

TEST_P(RedisCoherence, SlotsMoveUnderLoad) {
  ClusterGroup group(false, 3);
  RedisConfig config = config_for(group.endpoints()[0]);
  config.mode = redis::Mode::cluster;
  config.endpoints.clear();
  for (const std::string& at : group.endpoints()) config.endpoints.push_back(*Endpoint::parse(at));
  run(std::move(config), [&](Stack& stack) {
    const uint64_t epoch = stack.domain().epoch();
    for (size_t i = 0; i < 20; ++i) {
      const std::string key = group.node(i % 3).cli({"RANDOMKEY"});
      if (key.find(':') == std::string::npos) continue;
      const int slot = redis::key_slot(key);
      const size_t from = group.owner(slot);
      group.migrate(slot, from, (from + 1) % 3);
    }
    EXPECT_EQ(stack.domain().epoch(), epoch) << "slots that move in order lose nothing";
  });
}

TEST_P(RedisCoherence, EverythingIsFlushed) {
  const RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 10; ++i) {
      server.cli({"FLUSHALL"});
      let_run(100);
    }
  });
}

void fill_up(const RedisServer& server, const std::string& policy) {
  server.cli({"CONFIG", "SET", "maxmemory-policy", policy});
  // Less than it has: from now on every write finds it full.
  server.cli({"CONFIG", "SET", "maxmemory", "1mb"});
  let_run(1'500);
  server.cli({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_P(RedisCoherence, ServerIsFullAndEvictsNothing) {
  const RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) { fill_up(server, "noeviction"); });
}

TEST_P(RedisCoherence, ServerIsFullAndEvicts) {
  const RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    fill_up(server, "allkeys-lfu");
    EXPECT_NE(server.cli({"INFO", "stats"}).find("evicted_keys:"), std::string::npos);
  });
}

TEST_P(RedisCoherence, OnlyTheEpochPointerIsDeleted) {
  const RedisServer server;
  run(config_for(server.endpoint()), [&](Stack& stack) {
    const uint64_t claims = stack.life()->report().claims;
    for (int i = 0; i < 3; ++i) {
      const std::string key = server.cli({"--scan", "--pattern", "t:epoch:*"});
      EXPECT_EQ(server.cli({"DEL", key}), "1") << key;
      EXPECT_TRUE(eventually([&] { return server.cli({"EXISTS", key}) == "1"; }));
    }
    EXPECT_GE(stack.life()->report().claims, claims + 3);
    EXPECT_EQ(stack.life()->report().stage, LifeStage::joined);
  });
}

TEST_P(RedisCoherence, ConnectionsAreKilled) {
  const RedisServer server;
  run(config_for(server.endpoint()), [&](Stack&) {
    for (int i = 0; i < 20; ++i) {
      server.cli({"CLIENT", "KILL", "TYPE", "normal"});
      let_run(50);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Near, RedisCoherence, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "WithNearTier" : "WithoutNearTier"; });

}  // namespace
}  // namespace ragfs::redis_test
