#include "ragfs/cache/rules.h"

#include <gtest/gtest.h>

#include <set>

namespace ragfs {
namespace {

TEST(Rules, HaveNamesThatFindThem) {
  std::set<std::string_view> names;
  for (const RuleInfo& info : rules()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(find_rule(info.name), info.rule);
    EXPECT_EQ(rule_info(info.rule).sentence.back(), '.') << info.name;
  }
  EXPECT_FALSE(find_rule("no_such_rule").has_value());
}

#if defined(RAGFS_TEST_HOOKS)
TEST(Rules, SwitchTakesOneOutAndPutsItBack) {
  EXPECT_TRUE(rule_enabled(Rule::kRestampIsFill));
  {
    RuleSwitch off(Rule::kRestampIsFill);
    EXPECT_FALSE(rule_enabled(Rule::kRestampIsFill));
    EXPECT_TRUE(rule_enabled(Rule::kStampCheck));
    {
      RuleSwitch nested(Rule::kRestampIsFill);
    }
    EXPECT_FALSE(rule_enabled(Rule::kRestampIsFill));
  }
  EXPECT_TRUE(rule_enabled(Rule::kRestampIsFill));
}
#endif

}  // namespace
}  // namespace ragfs
