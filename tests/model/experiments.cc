#include "tests/model/experiments.h"

#include <fmt/format.h>

#include <ostream>

namespace ragfs::model {
namespace {

constexpr Verdict kStale = Verdict::kStale;
constexpr Verdict kSafe = Verdict::kSafe;

// In the order of the enum; extra rows of a rule follow its first.
constexpr Experiment kExperiments[] = {
    {Rule::kRunningMark, "one_path", kStale},
    {Rule::kRunningMark, "one_path", kSafe, false, true},  // it buys linearisability, not the base claim
    {Rule::kRecordBeforeUnmark, "one_path", kStale},
    {Rule::kRecordBeforeUnmark, "one_path", kSafe, false, true},
    {Rule::kClockAfterBackend, "one_path", kStale},
    {Rule::kFailedMutationRecords, "one_path", kStale},
    {Rule::kUnknownBackendKeepsRunning, "late_backend", kStale},
    {Rule::kNoPutBesideLateCall, "late_backend", kStale},
    {Rule::kMutationLockHeld, "one_path", kStale},
    {Rule::kRecordMaximum, "listing", kStale},
    {Rule::kParentListing, "listing", kStale},
    {Rule::kGrandparentListing, "grandparent", kStale},
    {Rule::kCreatedAncestors, "negative", kStale},
    {Rule::kNearErase, "near_flights", kStale},
    {Rule::kLocalEraseAfterFills, "near_flights", kStale},
    {Rule::kLocalEraseAfterFills, "negative_existing", kStale},
    {Rule::kStampCheck, "one_path", kStale},
    {Rule::kSubtreeCheck, "subtree", kStale},
    {Rule::kLeafBeforeRoot, "subtree", kStale},
    {Rule::kRecordsBeforeGet, "one_path", kStale},
    {Rule::kEpochOnHit, "restarts", kStale},
    {Rule::kEpochOnHit, "failover", kStale},
    {Rule::kEpochAfterGet, "failover", kStale},
    {Rule::kExpiryNotRearmed, "edits", kStale},
    {Rule::kFilledAtBeforeBackend, "edits", kStale},
    {Rule::kStatPlainEntries, "stat_of_link", kStale},
    {Rule::kStatListingRecord, "stat", kStale},
    {Rule::kNegativeTrueNotFound, "negative_existing", kStale},
    {Rule::kNegativeRecord, "negative", kStale},
    {Rule::kNegativeAncestors, "negative", kStale},
    {Rule::kNegativeEpoch, "negative_epoch", kStale},
    {Rule::kFillCheck, "one_path", kSafe},
    {Rule::kFillCheck, "subtree", kSafe},
    {Rule::kFillEpochAtStart, "failover", kStale},
    {Rule::kNearRegisteredBeforeGet, "near_flights", kStale},
    {Rule::kFlightRecords, "near_flights", kStale},
    {Rule::kFlightRecords, "subtree_flights", kStale},
    {Rule::kNoJoinWhileRunning, "near_flights", kStale},
    {Rule::kNoJoinWhileRunning, "near_flights", kSafe, false, true},
    {Rule::kFollowerRecheck, "near_flights", kSafe},
    {Rule::kSecondErase, "one_path", kStale},
    {Rule::kRecordsSurviveFailedErase, "one_path", kStale},
    {Rule::kEraseSettlesOwnValue, "one_path", kStale},
    {Rule::kUnknownPutMarks, "one_path", kStale},
    {Rule::kDropOnlyUnmarked, "one_path", kStale},
    {Rule::kMarkUntilExpiry, "ttl", kStale},
    {Rule::kResurrectKeepsRecords, "resurrect", kStale},
    {Rule::kSweepAfterFills, "subtree", kStale},
    {Rule::kFoldParentFirst, "subtree", kStale},
    {Rule::kWitness, "bypass", kStale},
    {Rule::kWitnessOrder, "bypass", kStale},
    {Rule::kWitnessCacheOff, "bypass", kStale},
    {Rule::kColdJoin, "bypass", kStale},
    {Rule::kMarkerNamedByLife, "restarts", kStale},
    {Rule::kMarkerIncarnation, "failover_restart", kStale},
    {Rule::kMarkerClock, "restarts", kStale, true},
    {Rule::kMarkerRecords, "restarts", kStale},
    {Rule::kMarkerMarks, "restarts", kStale},
    {Rule::kFreshPointerLife, "restarts", kSafe},
    {Rule::kCloseDrains, "restarts", kStale},
    {Rule::kMarkerPromise, "closed", kStale},
    {Rule::kEpochOnIncarnation, "failover", kStale},
    {Rule::kEpochDropsOlderOnly, "failover", kStale},
    {Rule::kClockKeptInLife, "failover", kStale, true},
    {Rule::kRevalidate, "revalidate", kStale},
    {Rule::kRevalidate, "inherited", kStale},
    {Rule::kVersionBeforeBytes, "revalidate", kStale},
    {Rule::kRestampIsFill, "revalidate", kStale},
};

}  // namespace

std::span<const Experiment> experiments() { return kExperiments; }

void PrintTo(const Experiment& experiment, std::ostream* out) {
  *out << rule_info(experiment.rule).name << " in " << experiment.world;
}

RuleSet rules_for(const Experiment& experiment) {
  const RuleSet designed = RuleSet::as_designed();
  const bool put_in = experiment.rule == Rule::kFollowerRecheck;
  return put_in ? designed.with(experiment.rule) : designed.without(experiment.rule);
}

World world_for(const Experiment& experiment) {
  World world = world_named(experiment.world, experiment.full);
  if (experiment.base_claim) world.base_claim_only.fill(true);
  return world;
}

std::string row(const Experiment& experiment, const Finding& finding) {
  return fmt::format(
      "| `{}` | {}{}{} | {} | {} |", rule_info(experiment.rule).name, experiment.world,
      experiment.full ? " (full)" : "", experiment.base_claim ? ", base claim" : "", verdict_word(finding.verdict),
      finding.verdict == kStale ? fmt::format("{} steps", finding.depth) : fmt::format("{} states", finding.states));
}

std::string row(const World& world, const Finding& finding) {
  return fmt::format("| `{}` | {} | {} | {} states, depth {} |", world.name, world.about, verdict_word(finding.verdict),
                     finding.states, finding.depth);
}

}  // namespace ragfs::model
