// What a provider that is down costs, how the cache comes back, and what many blocked writers leave to the others.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class Outage : public HookedFixture {
 protected:
  // A provider behind a network whose calls hang until the guard's time is over.
  void open_hanging() {
    open_hooked({}, {});
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.zero_copy = false;
    capabilities.by_hash = false;
    provider->set_capabilities(capabilities);
    open_over(guarded, {});
    for (int i = 0; i < 200; ++i) put_in_backend("/d/f" + std::to_string(i), "data");
    provider->add_rule({.action = ScriptedProvider::Action::lose, .delay_ms = 60'000});
  }
  static CoherenceConfig guard() {
    CoherenceConfig config;
    config.guard.operation_timeout_ms = 20;
    config.guard.failures_to_open = 1;
    config.guard.first_pause_ms = 60'000;
    config.guard.max_pause_ms = 60'000;
    config.sweep_interval_ms = 0;
    return config;
  }
  CoherenceConfig guarded = guard();
  int64_t read_many_ms(int count) {
    const int64_t start_ns = Clock::system().monotonic_ns();
    for (int i = 0; i < count; ++i) EXPECT_EQ(read("/d/f" + std::to_string(i)), "data");
    return (Clock::system().monotonic_ns() - start_ns) / 1'000'000;
  }
};

TEST_F(Outage, CostsAReaderOneDeadlineThenNothing) {
  open_hanging();
  (void)read("/d/f0");
  const uint64_t sent = provider->total_calls();
  EXPECT_GE(sent, 1U);
  const int64_t took_ms = read_many_ms(200);
  EXPECT_EQ(provider->total_calls(), sent) << "the breaker keeps calls away";
  EXPECT_LT(took_ms, 200 * 20 / 2) << "none of them waits for the provider";
  EXPECT_EQ(domain->provider().state(), BreakerState::open);
}

TEST_F(Outage, CostsAWriterOneDeadlineThenNothing) {
  open_hanging();
  EXPECT_TRUE(write("/d/f0", "data"));
  const uint64_t sent = provider->total_calls();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(write("/d/f" + std::to_string(i), "data"));
  EXPECT_EQ(provider->total_calls(), sent);
  EXPECT_LT(read_many_ms(100), 100 * 20 / 2);
}

// The bypass is short: one probe after the pause ends it, and the cache is in use again.
TEST_F(Outage, EndsByAProbeWithinThePause) {
  guarded.guard.first_pause_ms = 50;
  guarded.guard.max_pause_ms = 50;
  open_hanging();
  (void)read("/d/f0");
  ASSERT_EQ(domain->provider().state(), BreakerState::open);
  provider->clear_rules();
  const int64_t start_ns = Clock::system().monotonic_ns();
  const Deadline until = Deadline::in_ms(10'000);
  while (domain->provider().state() != BreakerState::closed && !until.expired()) EXPECT_EQ(read("/d/f1"), "data");
  EXPECT_EQ(domain->provider().state(), BreakerState::closed);
  const int64_t took_ms = (Clock::system().monotonic_ns() - start_ns) / 1'000'000;
  EXPECT_LT(took_ms, 5'000);
  EXPECT_GE(domain->provider().counts().probes, 1U);
  EXPECT_EQ(read("/d/f2"), "data");
  const uint64_t before = hits();
  EXPECT_EQ(read("/d/f2"), "data");
  EXPECT_EQ(hits(), before + 1);
}

class CaseA20Cached : public HookedFixture {};

// Two hundred writers of one path whose backend does not answer: who reads or writes anything else is not delayed, who
// cannot wait longer is told so, and none is left when the backend comes back.
TEST_F(CaseA20Cached, BlockedWritersOfOnePathLeaveAllOtherPathsAlone) {
  put_in_backend("/hot/f", "old");
  put_in_backend("/cool/f", "data");
  EXPECT_EQ(read("/cool/f"), "data");
  const scripted::Gate gate;
  const auto stand_still = gate.hook();
  hooked->set_before([stand_still](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation == "write" && path.text() == "/hot/f") stand_still(path.text());
    return std::nullopt;
  });
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  std::vector<std::jthread> writers;
  for (int i = 0; i < 200; ++i) {
    writers.emplace_back([&] {
      Context own;
      own.deadline = Deadline::in_ms(20'000);
      const auto written = cached->write(own, path_of("/hot/f"), "new", 0, WriteFlag::create);
      (written ? done : refused).fetch_add(1);
    });
  }
  ASSERT_TRUE(gate.wait_for_arrivals());
  // Beside them, with little time of their own.
  for (int i = 0; i < 50; ++i) {
    Context brief;
    brief.deadline = Deadline::in_ms(5'000);
    EXPECT_EQ(text_of(cached->read(brief, path_of("/cool/f"), 0, 0)), "data");
    EXPECT_TRUE(cached->stat(brief, path_of("/cool/f")));
    EXPECT_TRUE(cached->write(brief, path_of("/cool/g" + std::to_string(i)), "x", 0, WriteFlag::create));
    EXPECT_EQ(text_of(cached->read(brief, path_of("/hot/f"), 0, 0)), "old") << "what is there is read all the same";
  }
  // One more writer that cannot wait.
  Context hurried;
  hurried.deadline = Deadline::in_ms(20);
  const auto late = cached->write(hurried, path_of("/hot/f"), "late", 0, WriteFlag::create);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().code == ErrorCode::timeout || late.error().code == ErrorCode::would_block)
      << late.error().text();
  EXPECT_EQ(done.load(), 0);
  gate.open();
  writers.clear();
  EXPECT_EQ(done + refused, 200);
  EXPECT_GE(done.load(), 1);
  EXPECT_EQ(read("/hot/f"), "new");
}

}  // namespace
}  // namespace ragfs
