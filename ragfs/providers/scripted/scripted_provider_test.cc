#include "ragfs/providers/scripted/scripted_provider.h"

#include <gtest/gtest.h>

#include <thread>

namespace ragfs {
namespace {

using scripted::Action;
using scripted::Gate;
using scripted::Op;

constexpr Deadline kNever = Deadline::never();

Result<void> put(ScriptedProvider& provider, std::string_view key, std::string_view value, PutOptions options = {}) {
  return provider.put(CacheKey(key), {"", value}, options, kNever);
}

// The value, "<miss>" or the kind of the error.
std::string get(ScriptedProvider& provider, std::string_view key, Deadline deadline = kNever) {
  const GetResult result = provider.get(CacheKey(key), deadline);
  if (!result) return "<" + std::string(kind_name(result.error().code)) + ">";
  return result->value_or(Bytes::from_static("<miss>")).str();
}

TEST(ScriptedProvider, FailsTheCallsARuleNamesAndNoOthers) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "file:a", "1"));
  ASSERT_TRUE(put(provider, "dir:a", "2"));
  const auto rule = provider.add_rule({.op = Op::get,
                                       .key_prefix = "file:",
                                       .action = Action::fail,
                                       .code = ErrorCode::internal,
                                       .skip = 1,
                                       .times = 2});
  EXPECT_EQ(get(provider, "file:a"), "1");  // skipped
  EXPECT_EQ(get(provider, "file:a"), "<internal>");
  EXPECT_EQ(get(provider, "dir:a"), "2");
  EXPECT_EQ(get(provider, "file:a"), "<internal>");
  EXPECT_EQ(get(provider, "file:a"), "1");  // ran out
  EXPECT_EQ(provider.fired(rule), 2U);
  EXPECT_EQ(provider.calls(Op::get), 5U);
  EXPECT_EQ(provider.key_calls(Op::get, "dir:a"), 1U);
}

TEST(ScriptedProvider, ALostPutNeverLandsAndALateOneLandsWhenTold) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "k", "old"));
  provider.add_rule({.op = Op::put, .action = Action::lose, .times = 1});
  EXPECT_EQ(put(provider, "k", "lost").error().code, ErrorCode::timeout);
  EXPECT_EQ(provider.pending(), 0U);
  provider.add_rule({.op = Op::put, .action = Action::land_late, .times = 1});
  EXPECT_EQ(put(provider, "k", "late").error().code, ErrorCode::timeout);
  ASSERT_TRUE(provider.erase(CacheKey("k"), kNever));
  EXPECT_EQ(get(provider, "k"), "<miss>");
  EXPECT_EQ(provider.pending(), 1U);
  EXPECT_TRUE(provider.land());
  EXPECT_EQ(get(provider, "k"), "late");
  EXPECT_FALSE(provider.land());
}

TEST(ScriptedProvider, ALatePutLandsByItselfAfterItsTime) {
  ManualClock clock;
  ScriptedProvider provider(clock);
  provider.add_rule({.op = Op::put, .action = Action::land_late, .land_after_ms = 100});
  EXPECT_FALSE(put(provider, "k", "late"));
  clock.advance_ms(99);
  EXPECT_EQ(get(provider, "k"), "<miss>");
  clock.advance_ms(1);
  EXPECT_EQ(get(provider, "k"), "late");
}

TEST(ScriptedProvider, ADroppedEraseAnswersSuccessAndLeavesTheObject) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "k", "v"));
  provider.add_rule({.op = Op::erase, .action = Action::drop, .times = 1});
  EXPECT_TRUE(provider.erase(CacheKey("k"), kNever));
  EXPECT_EQ(get(provider, "k"), "v");
}

TEST(ScriptedProvider, ADelayEndsAtTheDeadlineAndItsPutMayStillLand) {
  ManualClock clock;
  ScriptedProvider provider(clock);
  provider.add_rule({.op = Op::put, .delay_ms = 60'000});
  const auto late = provider.put(CacheKey("k"), {"", "v"}, {}, Deadline::in_ms(10));
  EXPECT_EQ(late.error().code, ErrorCode::timeout);
  EXPECT_EQ(provider.peek("k"), std::nullopt);
  clock.advance_ms(60'000);
  EXPECT_EQ(get(provider, "k"), "v");
}

TEST(ScriptedProvider, AGateHoldsACallUntilItOpens) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "k", "old"));
  Gate gate;
  provider.add_rule({.op = Op::get, .times = 1, .before = gate.hook()});
  std::string seen;
  std::jthread reader([&] { seen = get(provider, "k"); });
  ASSERT_TRUE(gate.wait_for_arrivals());
  ASSERT_TRUE(put(provider, "k", "new"));
  gate.open();
  reader.join();
  EXPECT_EQ(seen, "new");
}

TEST(ScriptedProvider, ABatchRuleDecidesForAllAndAKeyRuleForOne) {
  ScriptedProvider provider;
  const std::vector<CacheKey> keys{CacheKey("a"), CacheKey("b"), CacheKey("c")};
  for (const CacheKey& key : keys) ASSERT_TRUE(put(provider, key.text(), key.text()));
  provider.add_rule({.op = Op::get_many, .action = Action::fail, .code = ErrorCode::unavailable, .times = 1});
  for (const GetResult& result : provider.get_many(keys, kNever)) {
    EXPECT_EQ(result.error().code, ErrorCode::unavailable);
  }
  provider.add_rule({.op = Op::get, .key_prefix = "b", .action = Action::fail});
  const auto results = provider.get_many(keys, kNever);
  EXPECT_TRUE(results[0].has_value());
  EXPECT_EQ(results[1].error().code, ErrorCode::timeout);
  EXPECT_EQ(results[2].value(), Bytes::from_static("c"));
  EXPECT_EQ(provider.calls(Op::get_many), 2U);
  EXPECT_EQ(provider.key_calls(Op::get, "c"), 2U);
}

TEST(ScriptedProvider, AFailoverBringsTheOlderStateBackUnderANewIncarnation) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "k", "old"));
  const ScriptedProvider::State replica = provider.snapshot();
  ASSERT_TRUE(provider.erase(CacheKey("k"), kNever));
  const std::string before = provider.incarnation();
  provider.restore(replica);
  provider.new_incarnation();
  EXPECT_NE(provider.incarnation(), before);
  EXPECT_EQ(get(provider, "k"), "old");
}

TEST(ScriptedProvider, WithoutACapabilityItFallsBackOrSaysSo) {
  ScriptedProvider provider;
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.batch_get = false;
  capabilities.enumerates = false;
  capabilities.atomic_put = 0;
  provider.set_capabilities(capabilities);
  const std::vector<CacheKey> keys{CacheKey("a"), CacheKey("b")};
  EXPECT_EQ(provider.get_many(keys, kNever).size(), 2U);
  EXPECT_EQ(provider.calls(Op::get_many), 0U);
  EXPECT_EQ(provider.calls(Op::get), 2U);
  EXPECT_EQ(provider.put_atomic({}, kNever).error().code, ErrorCode::not_supported);
  EXPECT_EQ(provider.erase_if([](auto, auto) { return true; }, kNever).error().code, ErrorCode::not_supported);
}

TEST(ScriptedProvider, DownAndClosedAreUnavailable) {
  ScriptedProvider provider;
  ASSERT_TRUE(put(provider, "k", "v"));
  provider.set_down(true);
  EXPECT_EQ(get(provider, "k"), "<unavailable>");
  provider.set_down(false);
  EXPECT_EQ(get(provider, "k"), "v");
  ASSERT_TRUE(provider.close(kNever));
  ASSERT_TRUE(provider.close(kNever));
  EXPECT_EQ(get(provider, "k"), "<unavailable>");
}

}  // namespace
}  // namespace ragfs
