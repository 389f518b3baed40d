// Experiments: each rule taken out, in a world where it matters, and what must come of it.
//
// A rule of ragfs/cache/rules.h without an experiment fails a test. docs/model.md has a row for each.
// Thread-safety: values.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "ragfs/cache/rules.h"
#include "tests/model/search.h"

namespace ragfs::model {

struct Experiment {
  Rule rule;
  std::string_view world;
  Verdict expected;
  bool full = false;        // needs the larger bounds
  bool base_claim = false;  // of the base claim alone: reads may go back while a mutation runs
};

std::span<const Experiment> experiments();

// For GoogleTest.
void PrintTo(const Experiment& experiment, std::ostream* out);

// The rule taken out (kFollowerRecheck: put in, since the code does without it).
RuleSet rules_for(const Experiment& experiment);
World world_for(const Experiment& experiment);

// The row of docs/model.md.
std::string row(const Experiment& experiment, const Finding& finding);
std::string row(const World& world, const Finding& finding);

}  // namespace ragfs::model
