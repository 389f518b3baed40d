// Each rule of restarts and failovers (3.6), taken out of the real code: a story that goes right with the rule must go
// wrong without it.
#include <algorithm>

#include "tests/lives/lives_stories.h"
#include "tests/lives/told_rules.h"

namespace ragfs {
namespace {

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
    Story{Rule::kMarkerIdentities, &LivesStories::uncached_mount},
    Story{Rule::kWarmVerify, &LivesStories::edited_while_down},
    Story{Rule::kWitnessPlace, &LivesStories::copied_state_directory},
    Story{Rule::kClockNotBack, &LivesStories::clock_set_back},
    Story{Rule::kInheritedListings, &LivesStories::inherited_listing},
    Story{Rule::kForeignPointer, &LivesStories::foreign_pointer},
    Story{Rule::kIdentityLock, &LivesStories::second_process},
    Story{Rule::kSharedVerifies, &LivesStories::shared_processes},
    Story{Rule::kOneDomain, &LivesStories::two_clients},
    Story{Rule::kForkLeaves, &LivesStories::child_of_fork},
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
