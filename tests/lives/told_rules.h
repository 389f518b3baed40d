// The rules of restarts, failovers and other writers (3.6, 3.9) that the code consults: each has a story in
// rules_of_lives_test.cc, told by lives_stories.h.
//
// For: that test, and the one that looks for rules without a story. Thread-safety: a constant.
#pragma once

#include <array>

#include "ragfs/cache/rules.h"

namespace ragfs {

inline constexpr std::array kToldInLives{
    Rule::kWitness,           Rule::kWitnessOrder,      Rule::kWitnessCacheOff, Rule::kColdJoin,
    Rule::kMarkerNamedByLife, Rule::kMarkerIncarnation, Rule::kMarkerClock,     Rule::kMarkerRecords,
    Rule::kMarkerMarks,       Rule::kCloseDrains,       Rule::kMarkerPromise,   Rule::kRestampIsFill,
    Rule::kMarkerIdentities,  Rule::kWarmVerify,        Rule::kWitnessPlace,    Rule::kClockNotBack,
    Rule::kInheritedListings, Rule::kForeignPointer,    Rule::kIdentityLock,    Rule::kSharedVerifies,
    Rule::kOneDomain,         Rule::kForkLeaves};

}  // namespace ragfs
