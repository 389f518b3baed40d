// The coherence protocol explored: every world with every rule, and each rule taken out (docs/model.md).
//
// Every test prints the row that docs/model.md must have; RAGFS_MODEL_TRACE=1 also prints the trace of each stale read
// that is expected. RAGFS_TEST_FULL=1 explores the larger bounds. Under a sanitizer a search ends early.
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/model/experiments.h"
#include "tests/model/search.h"
#include "tests/model/world.h"

namespace ragfs::model {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

bool full() { return is_set("RAGFS_TEST_FULL"); }
bool sanitized() { return is_set("RAGFS_TEST_SANITIZER"); }

uint64_t max_states() { return sanitized() ? 20'000 : full() ? 60'000'000 : 10'000'000; }

std::string words_of(const Finding& finding) {
  std::string words;
  for (size_t i = 0; i < finding.trace.size(); ++i) words += fmt::format("  {:>2}  {}\n", i, finding.trace[i]);
  return words;
}

const std::string& page() {
  static const std::string text = [] {
    std::ifstream in(std::string(RAGFS_SOURCE_DIR) + "/docs/model.md");
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  return text;
}

void report(const std::string& row, const Finding& finding) {
  fmt::print("{}  {} states, depth {}, {:.1f} s\n", row, finding.states, finding.depth, finding.seconds);
  if (sanitized()) return;  // the search may have ended early
  EXPECT_NE(page().find(row + "\n"), std::string::npos) << "docs/model.md needs the row\n" << row;
}

class ExplorerWorld : public testing::TestWithParam<std::string_view> {};

TEST_P(ExplorerWorld, NoReadIsStale) {
  const World world = world_named(GetParam(), full());
  const Finding finding = explore(world, RuleSet::as_designed(), max_states());
  if (full()) {
    fmt::print("{} (full): {} states, depth {}, {:.1f} s\n", world.name, finding.states, finding.depth,
               finding.seconds);
  } else {
    report(row(world, finding), finding);
  }
  EXPECT_NE(finding.verdict, Verdict::kStale) << words_of(finding);
  if (!sanitized()) {
    EXPECT_EQ(finding.verdict, Verdict::kSafe) << "the bound of states was reached";
  }
}

std::vector<std::string_view> world_names() {
  std::vector<std::string_view> names;
  for (const World& world : worlds(false)) names.push_back(world.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Explorer, ExplorerWorld, testing::ValuesIn(world_names()),
                         [](const auto& info) { return std::string(info.param); });

class ExplorerRule : public testing::TestWithParam<Experiment> {};

TEST_P(ExplorerRule, TakenOut) {
  const Experiment& experiment = GetParam();
  const RuleSet rules = rules_for(experiment);
  const Finding finding = explore(world_for(experiment), rules, max_states());
  report(row(experiment, finding), finding);
  if (is_set("RAGFS_MODEL_TRACE")) fmt::print("{}", words_of(finding));
  EXPECT_TRUE(rules.was_asked(experiment.rule)) << "the model has no switch for the rule";
  if (sanitized() && finding.verdict == Verdict::kBound) return;
  EXPECT_EQ(verdict_word(finding.verdict), verdict_word(experiment.expected)) << words_of(finding);
}

std::string experiment_name(const testing::TestParamInfo<Experiment>& info) {
  return fmt::format("{}_{}{}", rule_info(info.param.rule).name, info.param.world,
                     info.param.base_claim ? "_base_claim" : "");
}

INSTANTIATE_TEST_SUITE_P(Explorer, ExplorerRule, testing::ValuesIn(experiments().begin(), experiments().end()),
                         experiment_name);

TEST(Explorer, EveryRuleHasASwitchAndAnExpectation) {
  std::set<Rule> tried;
  for (const Experiment& experiment : experiments()) tried.insert(experiment.rule);
  for (const RuleInfo& info : rules()) {
    if (!is_modelled(info.rule)) continue;
    EXPECT_TRUE(tried.contains(info.rule)) << info.name << ": add it to the model and to tests/model/experiments.cc";
    EXPECT_NE(page().find(fmt::format("`{}`", info.name)), std::string::npos)
        << info.name << " is not in docs/model.md";
  }
}

// The design names the rules that may be taken out without harm; no other may be.
TEST(Explorer, OnlyTheNamedRulesAreExpectedToBeSafe) {
  const std::set<Rule> named{Rule::kFillCheck, Rule::kFollowerRecheck, Rule::kFreshPointerLife};
  std::set<Rule> found;
  std::set<Rule> safe;
  for (const Experiment& experiment : experiments()) {
    if (experiment.expected == Verdict::kStale) found.insert(experiment.rule);
    if (experiment.expected == Verdict::kSafe && !experiment.base_claim) safe.insert(experiment.rule);
  }
  EXPECT_EQ(safe, named);
  for (const RuleInfo& info : rules()) {
    if (!is_modelled(info.rule)) continue;
    EXPECT_NE(found.contains(info.rule), named.contains(info.rule)) << info.name;
  }
}

TEST(Explorer, TellsTheShortestTraceInWords) {
  const World world = world_named("one_path", false);
  const Finding finding = explore(world, RuleSet::as_designed().without(Rule::kStampCheck), max_states());
  ASSERT_EQ(finding.verdict, Verdict::kStale);
  ASSERT_EQ(finding.trace.size(), finding.depth + 1);
  EXPECT_NE(finding.trace.back().find("hit, delivers v0"), std::string::npos) << finding.trace.back();
  for (const std::string& step : finding.trace) EXPECT_FALSE(step.empty());
}

TEST(Explorer, SaysWhenABoundEndsTheSearch) {
  const Finding finding = explore(world_named("one_path", false), RuleSet::as_designed(), 1'000);
  EXPECT_EQ(finding.verdict, Verdict::kBound);
  EXPECT_GT(finding.states, 1'000U);
}

}  // namespace
}  // namespace ragfs::model
