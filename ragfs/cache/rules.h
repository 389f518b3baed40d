// Rules: the one list of what keeps a cached read from being stale (docs/design.md, section 3).
//
// Each rule has a name, a section and a sentence. The code asks `rule_enabled(Rule::kStampCheck)` where it applies one;
// a test takes a rule out with `RuleSwitch off(Rule::kStampCheck);` and must then see a stale read. tests/model has a
// switch for most rules of this list as well, and explores the protocol without it (docs/model.md).
// Not for configuration: without RAGFS_TEST_HOOKS the answer is `true` at compile time and RuleSwitch does not exist.
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#if defined(RAGFS_TEST_HOOKS)
#include <atomic>
#endif

namespace ragfs {

enum class Rule : uint8_t {
  // A mutation (3.2)
  kRunningMark,
  kRecordBeforeUnmark,
  kClockAfterBackend,
  kFailedMutationRecords,
  kUnknownBackendKeepsRunning,
  kNoPutBesideLateCall,
  kMutationLockHeld,
  kRecordMaximum,
  kParentListing,
  kGrandparentListing,
  kCreatedAncestors,
  kNearErase,
  kLocalEraseAfterFills,
  // A read (3.3)
  kStampCheck,
  kSubtreeCheck,
  kLeafBeforeRoot,
  kRecordsBeforeGet,
  kEpochOnHit,
  kEpochAfterGet,
  kExpiryNotRearmed,
  kFilledAtBeforeBackend,
  kStatPlainEntries,
  kStatListingRecord,
  kNegativeTrueNotFound,
  kNegativeRecord,
  kNegativeAncestors,
  kNegativeEpoch,
  // A fill and a flight (3.4, 5)
  kFillCheck,
  kFillEpochAtStart,
  kNearRegisteredBeforeGet,
  kFlightRecords,
  kNoJoinWhileRunning,
  kFollowerRecheck,
  // Letting records go (3.5)
  kSecondErase,
  kRecordsSurviveFailedErase,
  kEraseSettlesOwnValue,
  kUnknownPutMarks,
  kDropOnlyUnmarked,
  kMarkUntilExpiry,
  kResurrectKeepsRecords,
  kSweepAfterFills,
  kFoldParentFirst,
  // Restarts, failovers, lost invalidations (3.6)
  kWitness,
  kWitnessOrder,
  kWitnessCacheOff,
  kColdJoin,
  kMarkerNamedByLife,
  kMarkerIncarnation,
  kMarkerClock,
  kMarkerRecords,
  kMarkerMarks,
  kFreshPointerLife,
  kCloseDrains,
  kMarkerPromise,
  kEpochOnIncarnation,
  kEpochDropsOlderOnly,
  kClockKeptInLife,
  kRevalidate,
  kVersionBeforeBytes,
  kRestampIsFill,
  // What the model leaves out: clocks, versions, other processes (3.6, 3.9)
  kMarkerIdentities,
  kWarmVerify,
  kWitnessPlace,
  kClockNotBack,
  kFutureExpired,
  kRacyTimestamp,
  kInheritedListings,
  kForeignPointer,
  kIdentityLock,
  kSharedVerifies,
  kOneDomain,
  kForkLeaves,
};

inline constexpr size_t kRuleCount = static_cast<size_t>(Rule::kForkLeaves) + 1;
// tests/model has a switch for it.
constexpr bool is_modelled(Rule rule) { return rule <= Rule::kRestampIsFill; }

struct RuleInfo {
  Rule rule;
  std::string_view name;      // as in docs/model.md and the model's flags
  std::string_view section;   // of docs/design.md
  std::string_view sentence;  // what holds, and for whom
};

// In the order of the enum.
const std::array<RuleInfo, kRuleCount>& rules();
const RuleInfo& rule_info(Rule rule);
std::optional<Rule> find_rule(std::string_view name);

#if defined(RAGFS_TEST_HOOKS)

namespace rules_detail {
// Bit n: the n-th rule is taken out.
inline std::array<std::atomic<uint64_t>, (kRuleCount + 63) / 64> rules_off{};
constexpr size_t word_of(Rule rule) { return static_cast<size_t>(rule) / 64; }
constexpr uint64_t bit_of(Rule rule) { return uint64_t{1} << static_cast<size_t>(rule) % 64; }
}  // namespace rules_detail

// One relaxed load. False only while a RuleSwitch for the rule lives.
inline bool rule_enabled(Rule rule) noexcept {
  const uint64_t off = rules_detail::rules_off[rules_detail::word_of(rule)].load(std::memory_order_relaxed);
  return (off & rules_detail::bit_of(rule)) == 0;
}

inline bool all_rules_enabled() noexcept {
  uint64_t off = 0;
  for (const auto& word : rules_detail::rules_off) off |= word.load(std::memory_order_relaxed);
  return off == 0;
}

// Takes one rule out of the whole process while it lives. Made and destroyed while no call of the cache is running;
// switches of one rule may nest.
class RuleSwitch {
 public:
  explicit RuleSwitch(Rule rule) noexcept;
  ~RuleSwitch();
  RuleSwitch(const RuleSwitch&) = delete;
  RuleSwitch& operator=(const RuleSwitch&) = delete;

 private:
  const Rule rule_;
  const bool was_off_;
};

#else

constexpr bool rule_enabled(Rule) noexcept { return true; }
constexpr bool all_rules_enabled() noexcept { return true; }

#endif

}  // namespace ragfs
