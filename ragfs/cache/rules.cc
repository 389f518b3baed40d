#include "ragfs/cache/rules.h"

#include <algorithm>

namespace ragfs {
namespace {

constexpr std::array<RuleInfo, kRuleCount> kRules{{
    {Rule::kRunningMark, "running_mark", "3.2 step 2",
     "A mutation marks all that it affects as running before its backend call; while the mark stands no read hits and "
     "no fill is stored."},
    {Rule::kRecordBeforeUnmark, "record_before_unmark", "3.2 step 4",
     "A mutation sets its records before it takes the running marks off."},
    {Rule::kClockAfterBackend, "clock_after_backend", "3.2 step 4",
     "The clock is advanced after the backend call; records and the stamp of a write-through put are that value."},
    {Rule::kFailedMutationRecords, "failed_mutation_records", "3.2 step 4",
     "Records are set whatever the backend returned: a failed call may have changed something."},
    {Rule::kUnknownBackendKeepsRunning, "unknown_backend_keeps_running", "3.2 step 4",
     "A backend call whose outcome is unknown and that may still land leaves its path running."},
    {Rule::kNoPutBesideLateCall, "no_put_beside_late_call", "3.2 step 4",
     "A mutation that finds its path still running (an older call may still land) erases in step 5 and never stores."},
    {Rule::kMutationLockHeld, "mutation_lock_held", "3.2 step 1",
     "The mutation lock is held until the provider's part of the mutation has ended."},
    {Rule::kRecordMaximum, "record_maximum", "3.1",
     "A record takes the maximum of its old and its new value: mutations of different paths may share a listing."},
    {Rule::kParentListing, "parent_listing", "3.1",
     "A mutation of a path affects the listing of its parent: record, running mark and erase."},
    {Rule::kGrandparentListing, "grandparent_listing", "3.1",
     "A mutation affects the grandparent's listing where the backend's directories show times that change with their "
     "members."},
    {Rule::kCreatedAncestors, "created_ancestors", "3.1",
     "A mutation that made parents on the way affects the listing above each of them, up to the first known to exist."},
    {Rule::kNearErase, "near_erase", "3.7", "A mutation erases its keys from the near tier too."},

    {Rule::kLocalEraseAfterFills, "local_erase_after_fills", "3.5",
     "What the process keeps itself (near copies, negative entries) is erased after it was asked whether older fills "
     "have ended; before that, a fill could still put it back and end."},
    {Rule::kStampCheck, "stamp_check", "3.3", "An object hits only if its stamp is not below the record of its path."},
    {Rule::kSubtreeCheck, "subtree_check", "3.3",
     "An object hits only if its stamp is not below any subtree record at or above its path, and none of them runs."},
    {Rule::kLeafBeforeRoot, "leaf_before_root", "3.3",
     "Subtree records are looked up from the leaf to the root, so that a fold from child to parent is not missed."},
    {Rule::kRecordsBeforeGet, "records_before_get", "3.3",
     "Records are looked up before the get: after it, one that was settled and dropped in between is missed."},
    {Rule::kEpochOnHit, "epoch_on_hit", "3.3", "An object hits only if it carries the current epoch."},
    {Rule::kEpochAfterGet, "epoch_after_get", "3.3",
     "The epoch is compared after the get, with the one that is current then."},
    {Rule::kExpiryNotRearmed, "expiry_not_rearmed", "3.6",
     "Neither a hit nor a near copy re-arms filled_at or the logical expiry."},
    {Rule::kFilledAtBeforeBackend, "filled_at_before_backend", "3.6",
     "filled_at is taken before the backend read, write or version check whose bytes it dates."},
    {Rule::kStatPlainEntries, "stat_plain_entries", "3.3",
     "stat is answered from a listing only for an entry that is a plain file or directory."},
    {Rule::kStatListingRecord, "stat_listing_record", "3.3",
     "stat is answered from a listing only if the listing itself would hit: its own record, mark, subtree and epoch."},
    {Rule::kNegativeTrueNotFound, "negative_true_not_found", "3.3",
     "A negative entry is made only by a true `not found`, never by another error."},
    {Rule::kNegativeRecord, "negative_record", "3.1",
     "A negative entry is checked like an object: a creation of its path, or a fill older than it, ends it."},
    {Rule::kNegativeAncestors, "negative_ancestors", "3.1",
     "A mutation that made parents on the way ends the negative entries of those parents too."},

    {Rule::kNegativeEpoch, "negative_epoch", "3.3",
     "A negative entry carries its epoch and is refused in any other: it may be kept after a new epoch dropped the "
     "records."},
    {Rule::kFillCheck, "fill_check", "3.4",
     "A fill is stored only if no record that covers it is newer than its start or running (saves a useless put)."},
    {Rule::kFillEpochAtStart, "fill_epoch_at_start", "3.4",
     "A fill carries the epoch that was current before its backend read."},
    {Rule::kNearRegisteredBeforeGet, "near_registered_before_get", "3.4",
     "A copy into the near tier is registered as a fill before the provider get whose bytes it copies."},
    {Rule::kFlightRecords, "flight_records", "5",
     "A read joins a flight only if no record that covers it is newer than the flight's start."},
    {Rule::kNoJoinWhileRunning, "no_join_while_running", "3.3",
     "While a mutation that covers it runs, a read joins only a flight whose backend read has not begun."},
    {Rule::kFollowerRecheck, "follower_recheck", "5",
     "A follower checks the records again before it takes the flight's bytes (not needed: costs a second read)."},

    {Rule::kSecondErase, "second_erase", "3.5",
     "A record is settled only by an erase or put issued after every fill with an older start had ended."},
    {Rule::kRecordsSurviveFailedErase, "records_survive_failed_erase", "3.5",
     "Only a confirmed erase or put settles a record."},
    {Rule::kEraseSettlesOwnValue, "erase_settles_own_value", "3.5",
     "An erase settles a record only up to the value it was issued for."},
    {Rule::kUnknownPutMarks, "unknown_put_marks", "3.5",
     "A put with unknown outcome marks its key, whether or not a record exists."},
    {Rule::kDropOnlyUnmarked, "drop_only_unmarked", "3.5",
     "The record of a marked key is not dropped, even when it is settled."},
    {Rule::kMarkUntilExpiry, "mark_until_expiry", "3.5",
     "A mark stands until the object of the unknown put has logically expired, or for the rest of the epoch."},
    {Rule::kResurrectKeepsRecords, "resurrect_keeps_records", "3.5",
     "With a provider that may resurrect, a record stays until every object stored before it has logically expired."},
    {Rule::kSweepAfterFills, "sweep_after_fills", "3.5",
     "A subtree record is dropped only by a sweep issued after every older fill below it had ended, with no mark "
     "below it."},
    {Rule::kFoldParentFirst, "fold_parent_first", "3.5",
     "Folding sets the parent's subtree record first and drops the children then."},

    {Rule::kWitness, "witness", "3.6",
     "A start is warm only if the pointer's life is the one that the witness outside the provider names."},
    {Rule::kWitnessOrder, "witness_order", "3.6",
     "The witness moves to a fresh life before each attempt at the pointer and before the first mutation."},
    {Rule::kWitnessCacheOff, "witness_cache_off", "3.6",
     "A life with the cache off renews the witness before its first mutation as well."},
    {Rule::kColdJoin, "cold_join", "3.6",
     "A life that started without its provider and joins it later joins with a new epoch."},
    {Rule::kMarkerNamedByLife, "marker_named_by_life", "3.6",
     "The clean marker is named by its life; one key for all could be taken for a later life's."},
    {Rule::kMarkerIncarnation, "marker_incarnation", "3.6",
     "The marker is valid in the provider incarnation it names only."},
    {Rule::kMarkerClock, "marker_clock", "3.6", "A warm start goes on with the clock of the marker."},
    {Rule::kMarkerRecords, "marker_records", "3.6",
     "The marker carries the records that are not settled, subtree records among them."},
    {Rule::kMarkerMarks, "marker_marks", "3.6", "The marker carries the marked keys."},
    {Rule::kFreshPointerLife, "fresh_pointer_life", "3.6",
     "Each attempt to write the pointer uses another fresh life (beside the witness it is not needed, and free)."},
    {Rule::kCloseDrains, "close_drains", "3.6",
     "An orderly close stops fills and waits for running mutations before it writes the marker."},
    {Rule::kMarkerPromise, "marker_promise", "3.6",
     "After close the first mutation writes and syncs the witness with a fresh life first, or is refused."},
    {Rule::kEpochOnIncarnation, "epoch_on_incarnation", "3.6",
     "Another provider incarnation starts a new epoch before the first answer of its connection is believed."},
    {Rule::kEpochDropsOlderOnly, "epoch_drops_older_only", "3.6",
     "A new epoch drops only records and marks from before it began; what is newer guards objects of its own."},
    {Rule::kClockKeptInLife, "clock_kept_in_life", "3.6",
     "The clock never restarts inside a life: a running mutation holds a value of it across a change of epoch."},
    {Rule::kRevalidate, "revalidate", "3.6",
     "An object of an earlier epoch, or older than the mount's revalidate, is checked with the backend's version."},
    {Rule::kVersionBeforeBytes, "version_before_bytes", "3.6",
     "A file's version is read before its bytes or comes with them."},
    {Rule::kRestampIsFill, "restamp_is_fill", "3.6",
     "Re-stamping a verified object is a fill: registered, its start taken before the version is read."},

    {Rule::kMarkerIdentities, "marker_identities", "3.6",
     "A warm start goes on with the objects of the backends that the marker lists: those cached all through that "
     "life."},
    {Rule::kWarmVerify, "warm_verify", "3.6",
     "`warm: verify` checks each object of earlier lives once: files may have been edited while nothing ran."},
    {Rule::kWitnessPlace, "witness_place", "3.6",
     "A witness counts only where it was written: a copied or restored state directory remembers nothing."},
    {Rule::kClockNotBack, "clock_not_back", "3.6",
     "A start is cold when the wall clock is behind the one of the close: what has expired cannot be told."},
    {Rule::kFutureExpired, "future_expired", "3.6",
     "An object that claims to be filled later than now is expired: the wall clock has stepped back since."},
    {Rule::kRacyTimestamp, "racy_timestamp", "3.6",
     "An equal version proves nothing for a file that changed within 2 s of the fill."},
    {Rule::kInheritedListings, "inherited_listings", "3.6",
     "Listings of an earlier epoch are misses: directories have no version."},
    {Rule::kForeignPointer, "foreign_pointer", "3.9",
     "A life of another process in the pointer ends the use of the cache until a rejoin."},
    {Rule::kIdentityLock, "identity_lock", "3.9",
     "A process with the cache holds the lock of its backends alone; who comes later does not write."},
    {Rule::kSharedVerifies, "shared_verifies", "3.9",
     "With `shared: true` every object is compared with the backend's version at every read."},
    {Rule::kOneDomain, "one_domain", "3.9", "All clients of a namespace in one process share one coherence domain."},
    {Rule::kForkLeaves, "fork_leaves", "3.9", "A child of fork() reads past the cache and changes nothing."},
}};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kRuleCount; ++i) {
    if (static_cast<size_t>(kRules[i].rule) != i || kRules[i].name.empty() || kRules[i].sentence.empty()) return false;
  }
  return true;
}
static_assert(in_enum_order(), "kRules has one line for each Rule, in the order of the enum");

}  // namespace

const std::array<RuleInfo, kRuleCount>& rules() { return kRules; }

const RuleInfo& rule_info(Rule rule) { return kRules[static_cast<size_t>(rule)]; }

std::optional<Rule> find_rule(std::string_view name) {
  const auto* found =
      std::find_if(kRules.begin(), kRules.end(), [&](const RuleInfo& info) { return info.name == name; });
  if (found == kRules.end()) return std::nullopt;
  return found->rule;
}

#if defined(RAGFS_TEST_HOOKS)

RuleSwitch::RuleSwitch(Rule rule) noexcept
    : rule_(rule),
      was_off_((rules_detail::rules_off[rules_detail::word_of(rule)].fetch_or(rules_detail::bit_of(rule),
                                                                              std::memory_order_seq_cst) &
                rules_detail::bit_of(rule)) != 0) {}

RuleSwitch::~RuleSwitch() {
  if (was_off_) return;
  rules_detail::rules_off[rules_detail::word_of(rule_)].fetch_and(~rules_detail::bit_of(rule_),
                                                                  std::memory_order_seq_cst);
}

#endif

}  // namespace ragfs
