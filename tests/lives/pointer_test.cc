// The pointer while a life runs, and the wall clock between lives (3.6, 3.9).
#include "tests/lives/lives_fixture.h"

namespace ragfs {
namespace {

class PointerOfALife : public LivesFixture {
 protected:
  static CacheKey pointer_key() { return epoch_pointer_key(encode_key_part(LifeConfig().name_space)); }
  std::optional<EpochPointer> pointer() {
    const GetResult got = provider->get(pointer_key(), Deadline::in_ms(1'000));
    return got && got->has_value() ? decode_epoch_pointer((*got)->view()) : std::nullopt;
  }
};

TEST_F(PointerOfALife, AnEvictedOneIsWrittenAgainUnderAFreshLifeAndNothingIsLost) {
  put_in_backend("/d/f", "text");
  auto run = begin();
  (void)run->read("/d/f");
  const std::optional<EpochPointer> before = pointer();
  ASSERT_TRUE(before);
  ASSERT_TRUE(provider->erase(pointer_key(), Deadline::in_ms(1'000)));
  run->life->tend();
  const std::optional<EpochPointer> after = pointer();
  ASSERT_TRUE(after);
  EXPECT_NE(after->life, before->life);
  EXPECT_EQ(after->epoch, before->epoch);
  EXPECT_EQ(run->life->report().rewritten, 1U);
  EXPECT_TRUE(run->hits("/d/f"));
  EXPECT_TRUE(run->close());
  EXPECT_TRUE(begin()->warm());
}

TEST_F(PointerOfALife, ALateWriteOfAnAttemptOfItsOwnIsNoOtherWriter) {
  put_in_backend("/d/f", "text");
  provider->add_rule({.op = ScriptedProvider::Op::put,
                      .key_prefix = "epoch:",
                      .action = ScriptedProvider::Action::land_late,
                      .times = 1});
  auto run = begin();
  ASSERT_EQ(run->stage(), LifeStage::joined) << "the second attempt was confirmed";
  EXPECT_EQ(run->life->report().claims_failed, 1U);
  (void)run->read("/d/f");
  EXPECT_EQ(provider->land_all(), 1U);
  run->life->tend();
  EXPECT_EQ(run->stage(), LifeStage::joined);
  EXPECT_EQ(pointer()->life, run->life->life());
  EXPECT_TRUE(run->hits("/d/f"));
}

TEST_F(PointerOfALife, AnotherWritersIsLeftToItUntilRejoin) {
  put_in_backend("/d/f", "old");
  auto run = begin();
  (void)run->read("/d/f");
  RunOptions elsewhere = options;
  elsewhere.life.state_dir = root + "/elsewhere";
  {
    OneLife other(elsewhere, backend, provider);
    EXPECT_EQ(other.write("/d/f", "new"), "ok");
    run->life->tend();
    EXPECT_EQ(run->stage(), LifeStage::left);
    EXPECT_FALSE(stale(*run, "/d/f"));
    EXPECT_FALSE(run->hits("/d/f"));
    EXPECT_FALSE(run->close()) << "nothing to promise";
  }
}

// Not only every few seconds: whoever wrote while the provider was away for this process is seen as it comes back.
TEST_F(PointerOfALife, IsLookedAtWhenTheProviderComesBack) {
  remote_provider();
  put_in_backend("/d/f", "old");
  options.domain.guard.failures_to_open = 1;
  options.domain.guard.first_pause_ms = 10;
  options.domain.guard.max_pause_ms = 10;
  auto run = begin();
  (void)run->read("/d/f");
  provider->set_down(true);
  (void)run->read("/d/f");
  ASSERT_EQ(run->domain->provider().state(), BreakerState::open);
  provider->set_down(false);
  RunOptions elsewhere = options;
  elsewhere.life.state_dir = root + "/elsewhere";
  OneLife other(elsewhere, backend, provider);
  EXPECT_EQ(run->stage(), LifeStage::joined) << "it looks every ten minutes only";
  const Deadline until = Deadline::in_ms(20'000);
  while (run->stage() != LifeStage::left && !until.expired()) (void)run->read("/d/f");
  EXPECT_EQ(run->stage(), LifeStage::left);
}

TEST_F(PointerOfALife, AWallClockThatSteppedBackStartsCold) {
  put_in_backend("/d/f", "text");
  const int64_t now_ns = Clock::system().wall_ns();
  ManualClock first(now_ns);
  options.clock = &first;
  live_and_close("/d/f");
  ManualClock earlier(now_ns - 60'000'000'000);
  options.clock = &earlier;
  EXPECT_FALSE(begin()->warm());
}

TEST_F(PointerOfALife, ADirectoryThatWasNotCachedAllThroughIsInheritedByNobody) {
  put_in_backend("/d/f", "text");
  {
    auto first = begin();
    (void)first->read("/d/f");
    EXPECT_TRUE(first->close());
  }
  {
    RunOptions uncached = options;
    uncached.mount.enabled = false;
    OneLife second(uncached, backend, provider);
    EXPECT_TRUE(second.warm());
    EXPECT_TRUE(second.close());
  }
  auto third = begin();
  EXPECT_TRUE(third->warm());
  EXPECT_FALSE(third->hits("/d/f")) << "who knows what happened to it meanwhile";
}

}  // namespace
}  // namespace ragfs
