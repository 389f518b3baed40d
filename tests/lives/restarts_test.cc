// Restarts (3.6) with everything in place: a real engine that stays, processes that come, go and are killed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "ragfs/base/pause_point.h"
#include "tests/lives/instance_fixture.h"
#include "tests/redis/redis_server.h"

namespace ragfs {
namespace {

// Where the cache is kept from one process to the next.
enum class Engine : uint8_t { redis, disk };
constexpr std::array kEngines{Engine::redis, Engine::disk};
std::string name_of(Engine engine) { return engine == Engine::redis ? "redis" : "disk"; }

class Restarts : public InstanceFixture {
 protected:
  void begin(Engine engine) {
    engine_ = engine;
    if (engine == Engine::redis) redis.emplace();
    if (engine == Engine::disk) std::filesystem::create_directories(root + "/disk");
  }
  // Objects of the life before are served as they are: no version check hides what the epoch should have refused.
  Config trusting() const { return configured("trust"); }
  Config verifying() const { return configured("verify"); }
  Config without_cache() const { return config("      enabled: false\n"); }

  // A process that runs `work` with an instance and closes it in order; its exit status.
  int run(const Config& config, const std::function<bool(Instance&)>& work) {
    Child child([&](Child&) {
      auto instance = open(config);
      if (!instance || !work(*instance)) return 1;
      return close(*instance) ? 0 : 2;
    });
    return child.wait();
  }
  bool is_true(Instance& instance) const {
    bool right = true;
    for (const std::string name : {"f", "g"}) right = right && read(instance, "/" + name) == truth(name);
    const auto listed = instance.fs().read_dir(Context(), PathView());
    return right && listed && listed->size() == 2;
  }

  std::optional<redis_test::RedisServer> redis;

 private:
  Config configured(const std::string& warm) const {
    const std::string of_redis =
        redis ? fmt::format("      provider: redis\n      redis: {{endpoints: ['{}']}}\n", redis->unix_endpoint())
              : std::string();
    const std::string of_disk = fmt::format(
        "      embedded: {{dram_bytes: 16MiB, disk: {{directories: ['{}/disk'], capacity_bytes: 256MiB, bucket_bytes: "
        "8MiB, min_free_bytes: 0}}}}\n",
        root);
    return config((engine_ == Engine::redis ? of_redis : of_disk) + "      operation_timeout_ms: 2000\n",
                  ", warm: " + warm);
  }
  Engine engine_ = Engine::redis;
};

class RestartsOf : public Restarts, public ::testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override {
    Restarts::SetUp();
    begin(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, RestartsOf, ::testing::ValuesIn(kEngines),
                         [](const auto& info) { return name_of(info.param); });

class RestartsBesideRedis : public Restarts {
 protected:
  void SetUp() override {
    Restarts::SetUp();
    begin(Engine::redis);
  }
};

TEST_P(RestartsOf, AfterAnOrderlyCloseTheHitRateIsBack) {
  constexpr int kFiles = 200;
  for (int i = 0; i < kFiles; ++i) put(fmt::format("n{}", i), fmt::format("content {}", i));
  const auto read_all = [&](Instance& instance) {
    for (int i = 0; i < kFiles; ++i) {
      if (read(instance, fmt::format("/n{}", i)) != fmt::format("content {}", i)) return false;
    }
    return true;
  };
  for (const Config& config : {trusting(), verifying()}) {
    EXPECT_EQ(run(config, read_all), 0);
    const auto is_warm = [&](Instance& instance) {
      return read_all(instance) && instance.cache_report().warm && instance.cache_report().hits >= kFiles * 95 / 100;
    };
    EXPECT_EQ(run(config, is_warm), 0);
  }
}

TEST_P(RestartsOf, WhatWasEditedWhileNothingRanIsReadAnew) {
  EXPECT_EQ(run(verifying(), [&](Instance& instance) { return is_true(instance); }), 0);
  put("f", "new");  // as long as before, and its time is set back
  EXPECT_EQ(run(verifying(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_P(RestartsOf, ALifeWithoutTheCacheEndsTheEpoch) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(without_cache(), [&](Instance& instance) { return write(instance, "/f", "new").empty(); }), 0);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return !instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_P(RestartsOf, ALifeThatOnlyReadsWithoutTheCacheDoesNot) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(without_cache(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_P(RestartsOf, ACopiedStateDirectoryRemembersNothing) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  std::filesystem::copy(root + "/state", root + "/copy", std::filesystem::copy_options::recursive);
  // The original moves on; the pointer still names the life that the copy names.
  EXPECT_EQ(run(without_cache(), [&](Instance& instance) { return write(instance, "/f", "new").empty(); }), 0);
  state = "./copy";
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return !instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_P(RestartsOf, ANewEpochByTheOperatorRefusesWhatEarlierRunsLeft) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  put("f", "from the backup");
  const auto new_epoch = [&](Instance& instance) {
    return instance.new_epoch(Deadline::in_ms(10'000)).has_value() && is_true(instance);
  };
  EXPECT_EQ(run(trusting(), new_epoch), 0);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

TEST_P(RestartsOf, VerifyFindsAndRefusesWhatWasChangedBehindTheCache) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  put("f", "behind");
  const auto verify = [&](Instance& instance) {
    const auto report = instance.verify_cache(Context(), PathView());
    if (!report || report->wrong == 0 || report->objects < 2) return false;
    const auto again = instance.verify_cache(Context(), PathView());
    return again && again->wrong == 0 && is_true(instance);
  };
  EXPECT_EQ(run(trusting(), verify), 0);
}

TEST_F(RestartsBesideRedis, AStartWithoutTheProviderJoinsByItselfWithANewEpoch) {
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  redis->kill();
  const auto joins = [&](Instance& instance) {
    if (instance.cache_report().life != "apart" || !write(instance, "/f", "new").empty()) return false;
    redis->start();
    return instance.rejoin_cache(Deadline::in_ms(20'000)).has_value() && is_true(instance) && hits(instance, "/f");
  };
  Child child([&](Child&) {
    auto instance = open(trusting());
    const bool good = instance && joins(*instance) && close(*instance);
    redis->kill();  // started here, so ended here
    return good ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(RestartsBesideRedis, AnotherWriterInThePointerEndsTheCacheUntilRejoin) {
  // On another machine: other locks, the same namespace. Made before there are threads, as it starts some.
  Child elsewhere([&](Child& self) {
    self.wait_for_go();
    Config config = trusting();
    config.cache.state_dir = root + "/elsewhere";
    auto other = open(config);
    return other && write(*other, "/f", "by the other").empty() && close(*other) ? 0 : 1;
  });
  auto instance = open(trusting());
  ASSERT_TRUE(instance);
  EXPECT_TRUE(is_true(*instance));
  elsewhere.go();
  EXPECT_EQ(elsewhere.wait(), 0);
  const Deadline until = Deadline::in_ms(30'000);  // the pointer is looked at every five seconds
  while (instance->cache_report().life != "left" && !until.expired()) {
    (void)::poll(nullptr, 0, 50);
  }
  EXPECT_EQ(instance->cache_report().life, "left");
  EXPECT_EQ(read(*instance, "/f"), "by the other");
  EXPECT_FALSE(hits(*instance, "/f"));
  EXPECT_TRUE(instance->rejoin_cache(Deadline::in_ms(10'000)));
  EXPECT_TRUE(is_true(*instance));
  EXPECT_TRUE(hits(*instance, "/f"));
}

using Step = std::tuple<Engine, const char*>;
class Killed : public Restarts, public ::testing::WithParamInterface<Step> {
 protected:
  void SetUp() override {
    Restarts::SetUp();
    begin(std::get<Engine>(GetParam()));
  }
};

// The life before was closed in order, so its objects wait for a life that may use them. This one is killed on its way
// through start, mutation and close; whatever it had done by then, the next one is never stale.
TEST_P(Killed, AtThisStepTheNextLifeIsNeverStale) {
  const char* const point = std::get<const char*>(GetParam());
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  Child victim([&](Child&) {
    PausePoints::set_handler(point, [] { (void)::kill(::getpid(), SIGKILL); });
    auto instance = open(trusting());
    if (!instance) return 1;
    (void)is_true(*instance);
    (void)write(*instance, "/f", "new");
    (void)instance->invalidate(*Path::parse("/g"));
    (void)is_true(*instance);
    (void)close(*instance);
    return 0;
  });
  EXPECT_EQ(victim.wait(), -SIGKILL) << point << " was not reached";
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return is_true(instance); }), 0);
  EXPECT_EQ(run(trusting(), [&](Instance& instance) { return instance.cache_report().warm && is_true(instance); }), 0);
}

std::string name_of_step(const ::testing::TestParamInfo<Step>& info) {
  std::string name = name_of(std::get<Engine>(info.param)) + "_" + std::get<const char*>(info.param);
  std::ranges::replace(name, '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Killed,
    ::testing::Combine(::testing::ValuesIn(kEngines),
                       ::testing::Values("identity_lock.opened", "life.marker_read", "witness.before_sync",
                                         "witness.before_rename", "witness.moved", "life.before_pointer",
                                         "life.after_pointer", "fill.before_put", "mutation.marked",
                                         "mutation.before_backend", "mutation.after_backend", "mutation.before_settle",
                                         "mutation.clock_advanced", "mutation.settled", "mutation.before_publish",
                                         "close.stopped", "close.drained", "close.before_marker",
                                         "close.after_marker")),
    name_of_step);
// The end of the provider is a step of its own where it keeps something of this process.
INSTANTIATE_TEST_SUITE_P(AtTheEndOfTheDisk, Killed,
                         ::testing::Combine(::testing::Values(Engine::disk),
                                            ::testing::Values("disk.before_data", "disk.before_datasync",
                                                              "disk.before_meta", "disk.before_rename",
                                                              "disk.after_rename", "disk.close", "disk.before_clean")),
                         name_of_step);

}  // namespace
}  // namespace ragfs
