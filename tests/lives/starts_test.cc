// How a life begins (3.6): what it reads, what it writes first, and what it may take over from the lives before.
#include <algorithm>
#include <fstream>

#include "tests/coherence/hooked_file_system.h"
#include "tests/lives/lives_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;
using Action = ScriptedProvider::Action;

class StartOfALife : public LivesFixture {
 protected:
  bool has_key(std::string_view prefix) {
    return std::ranges::any_of(provider->keys(), [&](const std::string& key) { return key.starts_with(prefix); });
  }
  uint64_t witness() const {
    const StateDir directory(options.life.state_dir);
    const auto named = Witness(directory).read();
    return named ? named->value_or(0) : 0;
  }
  std::optional<EpochPointer> pointer() {
    const auto text = provider->peek(epoch_pointer_key(encode_key_part(LifeConfig().name_space)).text());
    return text ? decode_epoch_pointer(*text) : std::nullopt;
  }
  static uint64_t count(OneLife& run, CacheCounter counter) { return run.domain->counters().read(counter); }
};

TEST_F(StartOfALife, AfterAKillThereIsNoMarkerAndTheEpochIsNew) {
  put_in_backend("/d/f", "text");
  live_and_close("/d/f");
  EXPECT_TRUE(has_key("clean:"));
  {
    auto killed = begin();
    EXPECT_TRUE(killed->warm());
    EXPECT_TRUE(killed->hits("/d/f"));
    EXPECT_FALSE(has_key("clean:")) << "its time is over as soon as it was used";
  }
  EXPECT_FALSE(has_key("clean:"));
  auto next = begin();
  EXPECT_FALSE(next->warm());
  EXPECT_FALSE(next->hits("/d/f"));
}

TEST_F(StartOfALife, WithAProviderOfThisProcessNothingIsWrittenAnywhere) {
  options.life.outlives = false;
  put_in_backend("/d/f", "text");
  uint64_t first_epoch = 0;
  {
    auto run = begin();
    EXPECT_FALSE(run->hits("/d/f"));
    EXPECT_TRUE(run->hits("/d/f"));
    EXPECT_EQ(run->write("/d/f", "new"), "ok");
    first_epoch = run->domain->epoch();
    EXPECT_FALSE(run->close()) << "there is nothing to promise";
  }
  EXPECT_FALSE(has_key("epoch:") || has_key("clean:"));
  EXPECT_EQ(witness(), 0U);
  EXPECT_NE(begin()->domain->epoch(), first_epoch);
}

TEST_F(StartOfALife, WithoutAStateDirectoryEveryOneIsCold) {
  options.life.state_dir.clear();
  put_in_backend("/d/f", "text");
  for (int i = 0; i < 3; ++i) {
    auto run = begin();
    EXPECT_EQ(run->stage(), LifeStage::joined);
    EXPECT_FALSE(run->warm());
    EXPECT_FALSE(run->hits("/d/f"));
    EXPECT_TRUE(run->hits("/d/f"));
    EXPECT_FALSE(run->close());
  }
}

TEST_F(StartOfALife, BeforeThePointerIsConfirmedNothingIsServedOrStored) {
  put_in_backend("/d/f", "text");
  provider->add_rule({.op = Op::put, .key_prefix = "epoch:", .action = Action::lose});
  auto run = begin();
  EXPECT_EQ(run->stage(), LifeStage::apart);
  EXPECT_EQ(run->life->report().claims_failed, 3U);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_EQ(run->write("/d/g", "x"), "ok");
  EXPECT_FALSE(has_key("file:"));
  provider->clear_rules();
  run->life->tend();
  EXPECT_EQ(run->stage(), LifeStage::joined);
  EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_TRUE(run->hits("/d/f"));
}

TEST_F(StartOfALife, EachAttemptAtThePointerNamesAFreshLifeWhichTheWitnessNamesFirst) {
  put_in_backend("/d/f", "text");
  std::vector<uint64_t> named;
  PausePoints::set_handler("life.before_pointer", [&] { named.push_back(witness()); });
  provider->add_rule({.op = Op::put, .key_prefix = "epoch:", .action = Action::lose, .times = 2});
  auto run = begin();
  ASSERT_EQ(run->stage(), LifeStage::joined);
  ASSERT_EQ(named.size(), 3U);
  EXPECT_NE(named[0], named[1]);
  EXPECT_NE(named[1], named[2]);
  EXPECT_EQ(pointer()->life, named[2]);
}

TEST_F(StartOfALife, ANewEpochInsideALifeTakesAFreshOne) {
  put_in_backend("/d/f", "text");
  auto run = begin();
  EXPECT_FALSE(run->hits("/d/f"));
  const EpochPointer before = *pointer();
  const uint64_t clock = run->domain->table().clock();
  run->domain->new_epoch();
  run->life->tend();
  ASSERT_EQ(run->stage(), LifeStage::joined);
  EXPECT_NE(pointer()->life, before.life);
  EXPECT_NE(pointer()->epoch, before.epoch);
  EXPECT_EQ(witness(), pointer()->life);
  EXPECT_GE(run->domain->table().clock(), clock);
  EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_TRUE(run->close());
  EXPECT_TRUE(begin()->warm());
}

TEST_F(StartOfALife, WithTheCacheOffTheWitnessMovesBeforeTheFirstMutationReachesTheBackendAndNotOtherwise) {
  put_in_backend("/d/f", "old");
  live_and_close("/d/f");
  const uint64_t of_the_cache = witness();
  ASSERT_NE(of_the_cache, 0U);
  const auto hooked = std::make_shared<HookedFileSystem>(backend);
  backend = hooked;
  {
    auto reads = begin_off();
    EXPECT_EQ(reads->read("/d/f"), "old");
    EXPECT_TRUE(reads->fs->read_dir(ctx, *Path::parse("/d")));
  }
  EXPECT_EQ(witness(), of_the_cache);
  uint64_t seen = of_the_cache;
  hooked->set_before([&](std::string_view operation, PathView) {
    if (operation == "write") seen = witness();
    return std::optional<Error>();
  });
  EXPECT_EQ(begin_off()->write("/d/f", "new"), "ok");
  EXPECT_NE(seen, of_the_cache);
}

// Nobody may change a file whose change the next life would not hear of.
TEST_F(StartOfALife, WithoutAWitnessThatCanBeWrittenNothingIsChanged) {
  put_in_backend("/d/f", "old");
  live_and_close("/d/f");
  auto off = begin_off();
  PausePoints::set_handler("life.before_admission", [&] {
    std::filesystem::remove_all(options.life.state_dir);
    std::ofstream(options.life.state_dir) << "no directory";
  });
  EXPECT_NE(off->write("/d/f", "new"), "ok");
  EXPECT_EQ(truth("/d/f"), "old");
}

class Inherited : public StartOfALife {
 protected:
  void SetUp() override {
    StartOfALife::SetUp();
    options.clock = &clock;
    hooked = std::make_shared<HookedFileSystem>(backend);
    backend = hooked;
    put_in_backend("/d/f", "old");
    (void)begin()->read("/d/f");  // and is killed
  }
  void TearDown() override {
    run.reset();  // before its clock
    StartOfALife::TearDown();
  }
  // Ahead of the backend's own time, so that the file is not taken for just changed.
  ManualClock clock{Clock::system().wall_ns() + 60'000'000'000};
  std::shared_ptr<HookedFileSystem> hooked;
  std::unique_ptr<OneLife> run;
};

TEST_F(Inherited, AFileIsCheckedOnceAndThenServed) {
  options.domain.verify_inherited = true;
  run = begin();
  EXPECT_FALSE(run->warm());
  hooked->forget_calls();
  EXPECT_TRUE(run->hits("/d/f"));
  EXPECT_TRUE(run->hits("/d/f"));
  EXPECT_EQ(hooked->calls("version"), 1U);
  EXPECT_EQ(hooked->calls("read_file"), 0U);
  EXPECT_EQ(count(*run, CacheCounter::revalidated), 1U);
}

TEST_F(Inherited, AFileThatChangedIsReadAnew) {
  put_in_backend("/d/f", "new");
  options.domain.verify_inherited = true;
  run = begin();
  EXPECT_EQ(run->read("/d/f"), "new");
  EXPECT_EQ(count(*run, CacheCounter::revalidate_failed), 1U);
}

TEST_F(Inherited, WhereTheBackendTellsNoVersionItIsAMiss) {
  options.domain.verify_inherited = true;
  run = begin();
  hooked->set_before([](std::string_view operation, PathView path) {
    return operation == "version" ? std::optional(Error{ErrorCode::not_supported, std::string(path.text())})
                                  : std::nullopt;
  });
  EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_EQ(run->read("/d/f"), "old");
}

TEST_F(Inherited, WithDiscardItIsAMissUnasked) {
  options.domain.verify_inherited = false;
  run = begin();
  hooked->forget_calls();
  EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_EQ(hooked->calls("version"), 0U);
  EXPECT_TRUE(run->hits("/d/f"));
}

class SetBack : public StartOfALife {};

// All of it, pointer and marker too, to a state in which an earlier life had closed in order.
TEST_F(SetBack, BetweenTwoLivesTheNextOneIsCold) {
  put_in_backend("/d/f", "old");
  live_and_close("/d/f");
  const ScriptedProvider::State snapshot = provider->snapshot();
  {
    auto second = begin();
    EXPECT_EQ(second->write("/d/f", "new"), "ok");
    EXPECT_TRUE(second->close());
  }
  provider->restore(snapshot);
  auto third = begin();
  EXPECT_FALSE(third->warm());
  EXPECT_FALSE(stale(*third, "/d/f"));
}

// While a life runs, with no word of it in the incarnation: found out when the pointer is looked at.
TEST_F(SetBack, UnderALifeItsEpochEnds) {
  put_in_backend("/d/f", "old");
  live_and_close("/d/f");
  ScriptedProvider::State before_its_start = provider->snapshot();
  auto run = begin();
  EXPECT_TRUE(run->warm());
  ScriptedProvider::State of_its_start = provider->snapshot();
  EXPECT_EQ(run->remove("/d/f"), "ok");
  EXPECT_TRUE(run->domain->settler().drain(Deadline::in_ms(20'000)));
  provider->restore(std::move(before_its_start));
  run->life->tend();
  EXPECT_EQ(run->stage(), LifeStage::joined);
  EXPECT_FALSE(stale(*run, "/d/f"));
  EXPECT_EQ(pointer()->life, run->life->life());
  // To a pointer of its own that it has replaced since.
  provider->restore(std::move(of_its_start));
  run->life->tend();
  EXPECT_EQ(run->stage(), LifeStage::joined);
  EXPECT_FALSE(stale(*run, "/d/f"));
}

}  // namespace
}  // namespace ragfs
