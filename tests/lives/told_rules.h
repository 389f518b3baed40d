// The rules of restarts and failovers (3.6) that the code consults: each has a story in rules_of_lives_test.cc.
//
// For: that test, and the one that looks for rules without a story. Thread-safety: a constant.
#pragma once

#include <array>

#include "ragfs/cache/rules.h"

namespace ragfs {

inline constexpr std::array kToldInLives{Rule::kWitness,     Rule::kWitnessOrder,      Rule::kWitnessCacheOff,
                                         Rule::kColdJoin,    Rule::kMarkerNamedByLife, Rule::kMarkerIncarnation,
                                         Rule::kMarkerClock, Rule::kMarkerRecords,     Rule::kMarkerMarks,
                                         Rule::kCloseDrains, Rule::kMarkerPromise,     Rule::kRestampIsFill};

}  // namespace ragfs
