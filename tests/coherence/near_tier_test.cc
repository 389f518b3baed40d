// The near tier in front of a provider of another process: what it saves, and that it is never behind.
#include <algorithm>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/watched_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;

class NearTierTest : public WatchedFixture {
 protected:
  void SetUp() override { begin({}, {}); }

  // "old" in /d/f, a provider like a server, and a near tier of so many bytes.
  void begin(CoherenceConfig config, CachedMountConfig mount, uint64_t near_bytes = uint64_t{4} << 20,
             const Clock& clock = Clock::system()) {
    close_watched();
    open({}, {});
    close_watched();
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.zero_copy = false;
    capabilities.enumerates = false;
    provider->set_capabilities(capabilities);
    near = EmbeddedProvider::create({.dram_bytes = near_bytes}).value();
    config.guard.first_pause_ms = 1;
    config.guard.max_pause_ms = 5;
    open_watched_over(std::move(config), std::move(mount), 60'000, clock);
    put_in_backend("/d/f", "old");
  }
  uint64_t near_count(NearCounter counter) const { return domain->near()->read(counter); }
  // Calls to the provider that `ask` makes.
  template <typename Ask>
  uint64_t calls_of(const Ask& ask) {
    const uint64_t before = provider->total_calls();
    ask();
    return provider->total_calls() - before;
  }
};

TEST_F(NearTierTest, AHitTakesNoRoundTripWhateverWasAsked) {
  EXPECT_EQ(read("/d/f"), "old");
  EXPECT_EQ(list("/d"), "f");
  EXPECT_EQ(calls_of([&] {
              EXPECT_EQ(read("/d/f"), "old");
              EXPECT_EQ(list("/d"), "f");
              EXPECT_EQ(stat_size("/d/f"), "3");
              EXPECT_TRUE(cached->exists(ctx, path_of("/d/f")).value());
              EXPECT_EQ(cached->read_file(ctx, path_of("/d/f"))->data.str(), "old");
            }),
            0U);
  EXPECT_EQ(near_count(NearCounter::hits), 5U);
}

TEST_F(NearTierTest, AnswersAtOnceAsTheEmbeddedProviderDoes) {
  EXPECT_FALSE(cached->read_at_once(ctx, path_of("/d/f")));
  EXPECT_EQ(read("/d/f"), "old");
  ASSERT_TRUE(cached->read_at_once(ctx, path_of("/d/f")));
  EXPECT_EQ(cached->read_at_once(ctx, path_of("/d/f"))->str(), "old");
  EXPECT_EQ(cached->stat_at_once(ctx, path_of("/d/f"))->size, 3U);
  // With records about, the first read judges the object, and those after it need not.
  ASSERT_TRUE(cached->invalidate(ctx, path_of("/d/g")));
  EXPECT_EQ(read("/d/f"), "old");
  EXPECT_TRUE(cached->read_at_once(ctx, path_of("/d/f")));
}

TEST_F(NearTierTest, WhatTheProviderGivesIsKeptNear) {
  EXPECT_EQ(read("/d/f"), "old");
  domain->near()->clear();
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "old"); }), 1U);
  EXPECT_EQ(near_count(NearCounter::copies), 1U);
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "old"); }), 0U);
}

TEST_F(NearTierTest, APurgeEmptiesItOfTheAccountWhateverTheProviderCan) {
  put_in_backend("/e/f", "other");
  for (const bool enumerates : {false, true}) {
    EXPECT_EQ(read("/d/f"), "old");
    EXPECT_EQ(read("/e/f"), "other");
    ProviderCapabilities capabilities = provider->capabilities();
    capabilities.enumerates = enumerates;
    provider->set_capabilities(capabilities);
    const auto purged = domain->purge_account("d", Deadline::in_ms(5'000));
    if (enumerates) {
      EXPECT_EQ(purged.value(), 1U);
    } else {
      EXPECT_EQ(purged.error().code, ErrorCode::not_supported);
    }
    EXPECT_GT(calls_of([&] { EXPECT_EQ(read("/d/f"), "old"); }), 0U) << "not from memory";
    EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/e/f"), "other"); }), 0U);
  }
}

TEST_F(NearTierTest, AWrittenValueIsNearAtOnce) {
  ASSERT_TRUE(write("/d/f", "new"));
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "new"); }), 0U);
}

TEST_F(NearTierTest, EveryMutationEndsIt) {
  const auto warm = [&] {
    (void)read("/d/f");
    (void)read("/d/f");
    (void)list("/d");
  };
  warm();
  ASSERT_TRUE(append("/d/f", "+"));
  EXPECT_EQ(read("/d/f"), "old+");
  warm();
  ASSERT_TRUE(cached->truncate(ctx, path_of("/d/f"), 1));
  EXPECT_EQ(read("/d/f"), "o");
  EXPECT_EQ(stat_size("/d/f"), "1");
  warm();
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/f"), path_of("/d/g")));
  EXPECT_EQ(read("/d/f"), "ERROR not_found");
  EXPECT_EQ(list("/d"), "g");
  EXPECT_EQ(read("/d/g"), "o");
  warm();
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  EXPECT_EQ(read("/d/g"), "ERROR not_found");
  put_in_backend("/e/f", "1");
  EXPECT_EQ(read("/e/f"), "1");
  put_in_backend("/e/f", "2");
  ASSERT_TRUE(cached->invalidate(ctx, path_of("/e")));
  EXPECT_EQ(read("/e/f"), "2");
}

TEST_F(NearTierTest, GoesOnWhileTheProviderIsDownAndIsRightAfterIt) {
  EXPECT_EQ(read("/d/f"), "old");
  put_in_backend("/d/g", "other");
  provider->set_down(true);
  EXPECT_EQ(read("/d/f"), "old");
  for (int i = 0; i < 10; ++i) (void)read("/d/absent");
  EXPECT_NE(domain->provider().state(), BreakerState::closed);
  const uint64_t hits_before = near_count(NearCounter::hits);
  EXPECT_EQ(read("/d/f"), "old");
  EXPECT_EQ(near_count(NearCounter::hits), hits_before + 1);
  // Written and filled without the provider: near all the same.
  ASSERT_TRUE(write("/d/f", "new"));
  EXPECT_EQ(read("/d/f"), "new");
  EXPECT_EQ(read("/d/g"), "other");
  EXPECT_EQ(near_count(NearCounter::hits), hits_before + 2);
  EXPECT_EQ(read("/d/g"), "other");
  EXPECT_EQ(near_count(NearCounter::hits), hits_before + 3);
  provider->set_down(false);
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  EXPECT_EQ(read("/d/f"), "new");
  domain->near()->clear();
  EXPECT_EQ(read("/d/f"), "new") << "the provider's old copy was erased, or is refused";
}

TEST_F(NearTierTest, AnotherIncarnationOfTheProviderEmptiesIt) {
  EXPECT_EQ(read("/d/f"), "old");
  put_in_backend("/d/f", "changed past the cache");
  EXPECT_EQ(read("/d/f"), "old");
  provider->new_incarnation();
  EXPECT_EQ(near_count(NearCounter::clears), 1U);
  EXPECT_EQ(read("/d/f"), "changed past the cache");
}

TEST_F(NearTierTest, ShutWhileTheDomainIsApart) {
  EXPECT_EQ(read("/d/f"), "old");
  domain->leave_epoch();
  EXPECT_FALSE(cached->read_at_once(ctx, path_of("/d/f")));
  put_in_backend("/d/f", "new");
  EXPECT_EQ(read("/d/f"), "new");
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "new"); }), 0U) << "neither place is asked or filled";
  ASSERT_TRUE(domain->begin_epoch(7, domain->leaves(), provider->incarnation()));
  EXPECT_EQ(read("/d/f"), "new");
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "new"); }), 0U);
  EXPECT_GT(near_count(NearCounter::hits), 0U);
}

TEST_F(NearTierTest, ACopyLivesNoLongerThanItsObject) {
  ManualClock clock(1'000'000'000'000'000'000);
  CoherenceConfig config;
  config.default_ttl_ms = 10'000;
  begin(config, {}, uint64_t{4} << 20, clock);
  EXPECT_EQ(read("/d/f"), "old");
  put_in_backend("/d/f", "changed past the cache");
  clock.advance_ms(9'000);
  domain->near()->clear();
  EXPECT_EQ(read("/d/f"), "old");  // copied now, nine seconds old
  EXPECT_EQ(read("/d/f"), "old");
  clock.advance_ms(2'000);
  EXPECT_EQ(read("/d/f"), "changed past the cache");
  close_watched();  // before its clock
}

TEST_F(NearTierTest, AMountsRevalidateHoldsForCopiesToo) {
  ManualClock clock(1'000'000'000'000'000'000);
  CachedMountConfig mount;
  mount.revalidate_ms = 1'000;
  begin({}, mount, uint64_t{4} << 20, clock);
  EXPECT_EQ(read("/d/f"), "old");
  put_in_backend("/d/f", "changed from outside");
  clock.advance_ms(10'000);
  EXPECT_EQ(read("/d/f"), "changed from outside");
  close_watched();
}

TEST_F(NearTierTest, ADamagedCopyIsDroppedAndTheProviderAsked) {
  EXPECT_EQ(read("/d/f"), "old");
  ASSERT_TRUE(near->put(key_of("/d/f", ObjectKind::file), {"", "no envelope"}, {}, Deadline::never()));
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "old"); }), 1U);
  EXPECT_EQ(domain->counters().read(CacheCounter::damaged), 1U);
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/f"), "old"); }), 0U);
}

TEST_F(NearTierTest, WhatIsTooLargeForItComesFromTheProvider) {
  begin({}, {}, uint64_t{1} << 20);
  const std::string large(300'000, 'x');
  put_in_backend("/d/large", large);
  EXPECT_EQ(read("/d/large"), large);
  EXPECT_EQ(calls_of([&] { EXPECT_EQ(read("/d/large"), large); }), 1U);
  EXPECT_EQ(near_count(NearCounter::rejected), 2U);
}

TEST_F(NearTierTest, ObjectsOfASharedBackendAreNotKept) {
  close_watched();
  CachedMountConfig mount;
  mount.use.shared = true;
  open_watched_over({}, mount);
  EXPECT_EQ(read("/d/f"), "old");
  (void)read("/d/f");
  EXPECT_EQ(near_count(NearCounter::puts) + near_count(NearCounter::copies), 0U);
}

TEST_F(NearTierTest, AWriteThatMeetsARunningCopyNeedsNoSecondEraseOfTheProvider) {
  EXPECT_EQ(read("/d/f"), "old");
  domain->near()->clear();
  auto copies = PausePoints::arm("near.before_copy");
  std::jthread reader([&] { (void)read("/d/f"); });
  ASSERT_TRUE(copies->wait_for_arrival());
  ASSERT_TRUE(write("/d/f", "new"));
  const uint64_t erases = provider->key_calls(Op::erase, key_of("/d/f", ObjectKind::file).text());
  EXPECT_EQ(read("/d/f"), "new");
  copies->release();
  reader.join();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  EXPECT_EQ(read("/d/f"), "new");
  EXPECT_EQ(provider->key_calls(Op::erase, key_of("/d/f", ObjectKind::file).text()), erases);
  EXPECT_EQ(domain->counters().read(CacheCounter::second_erase), 0U);
}

TEST_F(NearTierTest, HasMetricsOfItsOwn) {
  (void)read("/d/f");
  (void)read("/d/f");
  const std::vector<ProviderMetric> metrics = domain->near()->metrics();
  const auto value = [&](std::string_view name) {
    const auto found = std::ranges::find_if(metrics, [&](const ProviderMetric& at) { return at.name == name; });
    return found == metrics.end() ? -1 : found->value;
  };
  EXPECT_EQ(value("near_hits_total"), 1);
  EXPECT_EQ(value("near_misses_total"), 1);
  EXPECT_EQ(value("near_puts_total"), 1);
  EXPECT_EQ(value("near_objects"), 1);
  EXPECT_GT(value("near_bytes"), 0);
  EXPECT_GE(value("near_evictions_total"), 0);
  const size_t named = static_cast<size_t>(std::ranges::count_if(metrics, [](const ProviderMetric& at) {
    return at.name.starts_with("near_") && at.name.find("dram") == std::string::npos;
  }));
  EXPECT_EQ(named, metrics.size());
}

}  // namespace
}  // namespace ragfs
