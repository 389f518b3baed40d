// Time: logical expiry, a wall clock that steps, revalidation, and how long marks and records of doubt are kept.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "ragfs/backends/local/local_file_system.h"
#include "tests/coherence/hooked_fixture.h"
#include "tests/contract/backend_contract.h"

namespace ragfs {
namespace {

constexpr int64_t kTtlMs = 10'000;

class ExpiryTest : public HookedFixture {
 protected:
  void SetUp() override { open_timed({}); }
  void open_timed(CachedMountConfig mount) {
    config.default_ttl_ms = kTtlMs;
    open_hooked(config, std::move(mount), clock);
  }
  ManualClock clock{1'700'000'000'000'000'000};
  CoherenceConfig config;
};

TEST_F(ExpiryTest, AnObjectEndsWithItsTime) {
  ProviderCapabilities no_ttl = ScriptedProvider::all_capabilities();
  no_ttl.native_ttl = false;  // the envelope's own expiry is what counts
  provider->set_capabilities(no_ttl);
  open_over(config, {}, clock);
  ASSERT_TRUE(write("/f", "one"));
  put_in_backend("/f", "behind");
  clock.advance_ms(kTtlMs - 1);
  EXPECT_EQ(read("/f"), "one");
  clock.advance_ms(1);
  EXPECT_EQ(read("/f"), "behind");
  EXPECT_EQ(domain->counters().read(CacheCounter::expired), 1U);
}

TEST_F(ExpiryTest, ListingsEndWithTheirTimeToo) {
  ASSERT_TRUE(mkdir("/d"));
  EXPECT_EQ(list("/d"), "");
  put_in_backend("/d/f", "x");
  clock.advance_ms(kTtlMs - 1);
  EXPECT_EQ(list("/d"), "");
  clock.advance_ms(1);
  EXPECT_EQ(list("/d"), "f");
}

// Inside a life nothing is told by the wall clock: it can neither revive an object nor end it.
TEST_F(ExpiryTest, AWallClockThatStepsBackRevivesNothing) {
  ASSERT_TRUE(write("/f", "one"));
  put_in_backend("/f", "behind");
  clock.advance_ms(kTtlMs - 1);
  clock.step_wall_ns(-3'600'000'000'000);
  EXPECT_EQ(read("/f"), "one");
  clock.advance_ms(1);
  clock.step_wall_ns(-3'600'000'000'000);
  EXPECT_EQ(read("/f"), "behind");
}

// An object of an earlier life, written under a clock that has stepped back since: how old it is cannot be known.
TEST_F(ExpiryTest, AnObjectFromTheFutureIsExpired) {
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(read("/f"), "one");
  put_in_backend("/f", "truth");
  for (const std::string& key : provider->keys()) {
    const std::string object = *provider->peek(key);
    auto decoded = decode_envelope(object, true);
    ASSERT_TRUE(decoded);
    if (decoded->info.kind != ObjectKind::file) continue;
    decoded->info.filled_at_ns += 3'600'000'000'000;
    decoded->info.expires_at_ns += 3'600'000'000'000;
    provider->poke(key, encode_envelope(decoded->info, decoded->payload) + std::string(decoded->payload));
  }
  EXPECT_EQ(read("/f"), "truth");
}

// An object is as old as the backend read that it came from, however long that read took.
TEST_F(ExpiryTest, ASlowFillDoesNotLengthenAnObjectsTime) {
  put_in_backend("/f", "one");
  auto armed = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  clock.advance_ms(kTtlMs - 1);
  armed->release();
  reader.join();
  put_in_backend("/f", "behind");
  EXPECT_EQ(read("/f"), "one");
  clock.advance_ms(1);
  EXPECT_EQ(read("/f"), "behind");
}

// A late put carries the envelope of its call, so its expiry ends the doubt about the key.
TEST_F(ExpiryTest, AMarkStandsUntilTheLatePutWouldHaveExpired) {
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  ASSERT_TRUE(write("/f", "doubtful"));
  EXPECT_EQ(domain->table().marked(), 1U);
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  EXPECT_GE(domain->table().path_records(), 1U) << "a marked key keeps its record";
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/f"), "ERROR not_found");
  clock.advance_ms(kTtlMs + 2'000);
  const Deadline until = Deadline::in_ms(10'000);
  while (domain->table().marked() > 0 && !until.expired()) std::this_thread::yield();
  EXPECT_EQ(domain->table().marked(), 0U);
  EXPECT_EQ(read("/f"), "ERROR not_found");
}

TEST_F(ExpiryTest, WithoutATimeAMarkStandsForTheEpoch) {
  open_hooked({}, {}, clock);
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::land_late, .times = 1});
  ASSERT_TRUE(write("/f", "doubtful"));
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  clock.advance_ms(365LL * 86'400'000);
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/f"), "ERROR not_found");
  EXPECT_EQ(domain->table().marked(), 1U);
  domain->new_epoch();
  EXPECT_EQ(domain->table().marked(), 0U);
  EXPECT_EQ(read("/f"), "ERROR not_found");
}

class ResurrectTest : public ExpiryTest {
 protected:
  void SetUp() override {
    ExpiryTest::SetUp();
    ProviderCapabilities forgetful = ScriptedProvider::all_capabilities();
    forgetful.may_resurrect = true;
    provider->set_capabilities(forgetful);
    open_over(config, {}, clock);
  }
  // Moves the clock in steps of a second, so that the settler takes its samples.
  void pass_ms(int64_t ms, const std::function<bool()>& until_true) {
    for (int64_t passed = 0; passed < ms; passed += 500) {
      clock.advance_ms(500);
      const Deadline tick = Deadline::in_ms(3);
      while (!tick.expired() && !until_true()) std::this_thread::yield();
    }
  }
};

TEST_F(ResurrectTest, AConfirmedEraseThatIsForgottenIsStillRefused) {
  ASSERT_TRUE(write("/f", "old"));
  ScriptedProvider::State before = provider->snapshot();
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  provider->restore(before);
  EXPECT_EQ(read("/f"), "ERROR not_found");
  ASSERT_TRUE(write("/f", "new"));
  provider->restore(std::move(before));
  EXPECT_EQ(read("/f"), "new");
}

TEST_F(ResurrectTest, AForgottenSubtreeEraseIsStillRefused) {
  put_in_backend("/d/f", "old");
  EXPECT_EQ(read("/d/f"), "old");
  ScriptedProvider::State before = provider->snapshot();
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  ASSERT_TRUE(domain->settler().sweep());
  provider->restore(std::move(before));
  EXPECT_EQ(read("/d/f"), "ERROR not_found");
}

// A fill that began before the mutation stores long after it; what it stores must have expired before the record goes.
TEST_F(ResurrectTest, ARecordOutlivesWhatASlowFillStores) {
  put_in_backend("/f", "old");
  auto armed = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { (void)read("/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(write("/f", "new"));
  pass_ms(2 * kTtlMs, [] { return false; });
  armed->release();
  reader.join();
  pass_ms(2'000, [&] { return domain->table().path_records() == 0; });
  EXPECT_EQ(read("/f"), "new");
}

class RevalidateTest : public CacheFixture {
 protected:
  void SetUp() override {
    auto local = LocalFileSystem::open({.root_dir = dir.path()});
    ASSERT_TRUE(local);
    backend = std::shared_ptr<FileSystem>(*std::move(local));
    provider = std::make_shared<ScriptedProvider>(clock);
    CachedMountConfig mount;
    mount.revalidate_ms = 1'000;
    open_over({}, mount, clock);
  }
  void edit_behind(const std::string& name, std::string_view data) {
    std::ofstream(dir.path() + name, std::ios::trunc) << data;
  }
  // Sets a file's time so far back that its timestamps can be trusted.
  void make_old(const std::string& name) {
    const timespec times[2] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0}, {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (dir.path() + name).c_str(), times, 0), 0);
  }
  contract::TempDir dir;
  // Not the system's: a step of it is what ages an object. It begins at today's date, as file times do.
  ManualClock clock{Clock::system().wall_ns()};
};

TEST_F(RevalidateTest, AnEditBehindTheCacheIsSeenAfterTheInterval) {
  edit_behind("/f", "one");
  make_old("/f");
  EXPECT_EQ(read("/f"), "one");
  edit_behind("/f", "two");
  EXPECT_EQ(read("/f"), "one") << "within the interval the cache is trusted";
  clock.advance_ms(1'000);
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(domain->counters().read(CacheCounter::revalidate_failed), 1U);
}

TEST_F(RevalidateTest, AnUnchangedFileIsServedAgainWithoutReadingIt) {
  edit_behind("/f", "one");
  make_old("/f");
  EXPECT_EQ(read("/f"), "one");
  for (int i = 1; i <= 3; ++i) {
    clock.advance_ms(1'000);
    EXPECT_EQ(read("/f"), "one");
    EXPECT_EQ(domain->counters().read(CacheCounter::revalidated), static_cast<uint64_t>(i));
    EXPECT_EQ(read("/f"), "one");
    EXPECT_EQ(domain->counters().read(CacheCounter::revalidated), static_cast<uint64_t>(i)) << "re-stamped";
  }
  EXPECT_EQ(cached->count(CacheCounter::file_miss), 1U);
}

// A file that changed within two seconds of its read may have changed again with the same timestamps.
TEST_F(RevalidateTest, ATimestampTooCloseToTheReadIsNotTrusted) {
  edit_behind("/f", "one");  // now: racy
  EXPECT_EQ(read("/f"), "one");
  clock.advance_ms(1'000);
  EXPECT_EQ(read("/f"), "one");
  EXPECT_EQ(domain->counters().read(CacheCounter::revalidated), 0U);
  EXPECT_EQ(cached->count(CacheCounter::file_miss), 2U);
}

// The rule looks at when the bytes were read, not at when a slow fill stored them.
TEST_F(RevalidateTest, ASlowFillDoesNotMakeATimestampTrusted) {
  edit_behind("/f", "one");
  auto armed = PausePoints::arm("fill.after_backend_read");
  std::jthread reader([&] { (void)read("/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  clock.advance_ms(5'000);
  armed->release();
  reader.join();
  clock.advance_ms(1'000);
  EXPECT_EQ(read("/f"), "one");
  EXPECT_EQ(domain->counters().read(CacheCounter::revalidated), 0U);
}

TEST_F(RevalidateTest, ListingsHaveNoVersionAndAreReadAgain) {
  edit_behind("/f", "one");
  EXPECT_EQ(list("/"), "f");
  edit_behind("/g", "two");
  EXPECT_EQ(list("/"), "f");
  EXPECT_EQ(stat_size("/f"), "3");
  clock.advance_ms(1'000);
  EXPECT_EQ(list("/"), "f g");
}

TEST_F(RevalidateTest, AFileDeletedBehindTheCacheGoesToo) {
  edit_behind("/f", "one");
  make_old("/f");
  EXPECT_EQ(read("/f"), "one");
  ASSERT_EQ(::unlink((dir.path() + "/f").c_str()), 0);
  clock.advance_ms(1'000);
  EXPECT_EQ(read("/f"), "ERROR not_found");
  EXPECT_EQ(stat_size("/f"), "ERROR not_found");
}

}  // namespace
}  // namespace ragfs
