// RuleSet: which rules of ragfs/cache/rules.h hold in one exploration.
//
// Every question is remembered, so that a test can tell that the model has a switch for a rule.
// Thread-safety: none, one set belongs to one exploration.
#pragma once

#include <cstdint>

#include "ragfs/cache/rules.h"

namespace ragfs::model {

class RuleSet {
 public:
  // What the code does: every rule but the follower's re-check, which is not needed and costs a second backend read.
  static RuleSet as_designed() { return RuleSet(~uint64_t{0}).without(Rule::kFollowerRecheck); }

  RuleSet without(Rule rule) const { return RuleSet(on_ & ~bit(rule)); }
  RuleSet with(Rule rule) const { return RuleSet(on_ | bit(rule)); }

  bool on(Rule rule) const {
    asked_ |= bit(rule);
    return (on_ & bit(rule)) != 0;
  }
  bool was_asked(Rule rule) const { return (asked_ & bit(rule)) != 0; }

 private:
  explicit RuleSet(uint64_t on) : on_(on) {}
  static constexpr uint64_t bit(Rule rule) { return uint64_t{1} << static_cast<unsigned>(rule); }

  uint64_t on_;
  mutable uint64_t asked_ = 0;
};

}  // namespace ragfs::model
