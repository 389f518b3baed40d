// Each rule of restarts and failovers (3.6), taken out of the real code: a story that goes right with the rule must go
// wrong without it.
#include <algorithm>
#include <functional>

#include "tests/lives/lives_fixture.h"
#include "tests/lives/told_rules.h"

namespace ragfs {
namespace {

// Each tells its story and answers whether an answer was wrong.
class LivesStories : public LivesFixture {
 public:
  // A life with the cache off changes the file; the pointer still names the life before.
  bool life_without_cache() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    {
      auto off = begin_off();
      EXPECT_EQ(off->write("/d/f", "new"), "ok");
    }
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // A life without its provider changes the file and is killed.
  bool witness_order() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    provider->set_down(true);
    {
      auto apart = begin();
      EXPECT_EQ(apart->stage(), LifeStage::apart);
      EXPECT_EQ(apart->write("/d/f", "new"), "ok");
    }
    provider->set_down(false);
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // The same life joins when the provider is back.
  bool cold_join() {
    put_in_backend("/d/f", "old");
    live_and_close("/d/f");
    provider->set_down(true);
    auto run = begin();
    EXPECT_EQ(run->write("/d/f", "new"), "ok");
    EXPECT_EQ(run->read("/d/f"), "new");
    provider->set_down(false);
    run->life->tend();
    EXPECT_EQ(run->stage(), LifeStage::joined);
    return stale(*run, "/d/f");
  }

  // A marker lands late, after another life had changed the file without being able to tell the provider.
  bool late_marker() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      provider->add_rule({.op = ScriptedProvider::Op::put,
                          .key_prefix = "clean:",
                          .action = ScriptedProvider::Action::land_late,
                          .times = 1});
      EXPECT_FALSE(first->close());
    }
    {
      auto second = begin();
      EXPECT_FALSE(second->warm());
      provider->add_rule(
          {.op = ScriptedProvider::Op::put, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
      provider->add_rule(
          {.op = ScriptedProvider::Op::erase, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
      EXPECT_EQ(second->write("/d/f", "new"), "ok");
      EXPECT_FALSE(second->close(50)) << "what could not be told is not settled";
    }
    provider->clear_rules();
    EXPECT_EQ(provider->land_all(), 1U);
    auto third = begin();
    return stale(*third, "/d/f");
  }

  // The provider is set back to an older state of one shard: the pointer and the marker stay.
  bool older_snapshot() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      const ScriptedProvider::State before = provider->snapshot();
      EXPECT_EQ(first->write("/d/f", "new"), "ok");
      EXPECT_TRUE(first->close());
      ScriptedProvider::State after = provider->snapshot();
      for (const auto& [key, stored] : before) {
        if (key.starts_with("file:")) after[key] = stored;
      }
      provider->restore(after);
      provider->new_incarnation();
    }
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // Failed erases in a life whose clock began anew: old objects have greater stamps than its records.
  bool marker_clock() {
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      for (int i = 0; i < 20; ++i) (void)first->write("/d/g", std::to_string(i));
      (void)first->read("/d/f");
      EXPECT_TRUE(first->close());
    }
    auto next = begin();
    EXPECT_TRUE(next->warm());
    provider->add_rule(
        {.op = ScriptedProvider::Op::put, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
    provider->add_rule(
        {.op = ScriptedProvider::Op::erase, .key_prefix = "file:", .action = ScriptedProvider::Action::fail});
    EXPECT_EQ(next->write("/d/f", "new"), "ok");
    return stale(*next, "/d/f");
  }

  // What a subtree record refuses is still in the provider when the next life goes on.
  bool marker_records() {
    remote_provider();
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
      EXPECT_TRUE(first->fs->remove_all(ctx, *Path::parse("/d")));
      EXPECT_TRUE(first->close());
    }
    auto next = begin();
    EXPECT_TRUE(next->warm());
    return stale(*next, "/d/f");
  }

  // A put that timed out in one life lands in the next, after a removal was confirmed.
  bool marker_marks() {
    put_in_backend("/d/f", "old");
    provider->add_rule({.op = ScriptedProvider::Op::put,
                        .key_prefix = "file:",
                        .action = ScriptedProvider::Action::land_late,
                        .times = 1});
    live_and_close("/d/f");
    auto next = begin();
    EXPECT_TRUE(next->warm());
    EXPECT_EQ(next->remove("/d/f"), "ok");
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    EXPECT_EQ(provider->land_all(), 1U);
    return stale(*next, "/d/f");
  }

  // A fill of the life before is still under way when the next one begins.
  bool close_drains() {
    put_in_backend("/d/f", "old");
    auto first = begin();
    scripted::Gate gate;
    provider->add_rule({.op = ScriptedProvider::Op::put, .key_prefix = "file:", .times = 1, .before = gate.hook()});
    std::jthread reader([&] { (void)first->read("/d/f"); });
    EXPECT_TRUE(gate.wait_for_arrivals());
    (void)first->close(100);
    auto next = begin();
    EXPECT_EQ(next->remove("/d/f"), "ok");
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    gate.open();
    reader.join();
    return stale(*next, "/d/f");
  }

  // The first life goes on writing after it was closed.
  bool mutation_after_close() {
    put_in_backend("/d/f", "old");
    auto first = begin();
    (void)first->read("/d/f");
    EXPECT_TRUE(first->close());
    EXPECT_EQ(first->write("/d/f", "new"), "ok");
    auto next = begin();
    return stale(*next, "/d/f");
  }

  // A failover to a replica that never heard of the last write.
  bool failover() {
    remote_provider();
    put_in_backend("/d/f", "old");
    auto run = begin();
    (void)run->read("/d/f");
    const ScriptedProvider::State before = provider->snapshot();
    EXPECT_EQ(run->write("/d/f", "new"), "ok");
    EXPECT_TRUE(run->domain->settler().drain(Deadline::in_ms(20'000)));
    provider->restore(before);
    provider->new_incarnation();
    return stale(*run, "/d/f");
  }

  // A mutation comes between the version check of an inherited object and its re-stamping.
  bool restamp_is_fill() {
    // Ahead of the backend's own time, so that the file is not taken for just changed.
    ManualClock clock(Clock::system().wall_ns() + 60'000'000'000);
    options.clock = &clock;
    options.domain.verify_inherited = true;
    put_in_backend("/d/f", "old");
    {
      auto first = begin();
      (void)first->read("/d/f");
    }
    auto next = begin();
    EXPECT_FALSE(next->warm());
    bool once = true;
    PausePoints::set_handler("revalidate.version_read", [&] {
      if (!std::exchange(once, false)) return;
      EXPECT_EQ(next->remove("/d/f"), "ok");
    });
    EXPECT_EQ(next->read("/d/f"), "old") << "it was the truth when it was checked";
    EXPECT_TRUE(next->domain->settler().drain(Deadline::in_ms(20'000)));
    PausePoints::clear();
    return stale(*next, "/d/f");
  }
};

struct Story {
  Rule rule;
  bool (LivesStories::*tell)();
};

constexpr std::array kStories{
    Story{Rule::kWitness, &LivesStories::life_without_cache},
    Story{Rule::kWitnessCacheOff, &LivesStories::life_without_cache},
    Story{Rule::kWitnessOrder, &LivesStories::witness_order},
    Story{Rule::kColdJoin, &LivesStories::cold_join},
    Story{Rule::kMarkerNamedByLife, &LivesStories::late_marker},
    Story{Rule::kMarkerIncarnation, &LivesStories::older_snapshot},
    Story{Rule::kMarkerClock, &LivesStories::marker_clock},
    Story{Rule::kMarkerRecords, &LivesStories::marker_records},
    Story{Rule::kMarkerMarks, &LivesStories::marker_marks},
    Story{Rule::kCloseDrains, &LivesStories::close_drains},
    Story{Rule::kMarkerPromise, &LivesStories::mutation_after_close},
    Story{Rule::kRestampIsFill, &LivesStories::restamp_is_fill},
    // Told in tests/coherence too, of a domain without a life.
    Story{Rule::kEpochOnIncarnation, &LivesStories::failover},
};

void PrintTo(const Story& story, std::ostream* out) { *out << rule_info(story.rule).name; }

class RulesOfLivesTest : public LivesStories, public ::testing::WithParamInterface<Story> {};

TEST_P(RulesOfLivesTest, GoesRightWithTheRuleAndWrongWithoutIt) {
  const RuleInfo& info = rule_info(GetParam().rule);
  EXPECT_FALSE((this->*GetParam().tell)()) << "with the rule: " << info.sentence;
  PausePoints::clear();
  fresh_world();
  const RuleSwitch off(GetParam().rule);
  EXPECT_TRUE((this->*GetParam().tell)()) << "not needed any more? " << info.sentence;
}

INSTANTIATE_TEST_SUITE_P(AllRules, RulesOfLivesTest, ::testing::ValuesIn(kStories),
                         [](const auto& info) { return std::string(rule_info(info.param.rule).name); });

TEST(RulesOfLives, EachOneHasAStory) {
  for (const Rule rule : kToldInLives) {
    EXPECT_EQ(std::ranges::count(kStories, rule, &Story::rule), 1) << rule_info(rule).name;
  }
  EXPECT_EQ(kStories.size(), kToldInLives.size() + 1);
}

}  // namespace
}  // namespace ragfs
