// FenceRules: the one list of what makes the disk fence right (docs/store.md, docs/design.md 8.1).
//
// The code asks `fence_rule(FenceRule::kX)` where it applies a rule; a test takes one out with `FenceRuleSwitch` and
// must then fail. Not for configuration: without RAGFS_TEST_HOOKS the answer is `true` at compile time.
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <cstdint>

#if defined(RAGFS_TEST_HOOKS)
#include <atomic>
#endif

namespace ragfs {

enum class FenceRule : uint8_t {
  kFenceNowClass,      // ENODEV, ENXIO, EROFS, ESHUTDOWN fence without a check
  kCheckClass,         // EIO and its like are checked
  kIgnoreClass,        // ENOSPC, EMFILE, ... never fence
  kVerdictIsFstat,     // the result of syncfs decides nothing
  kSyncOnWriteKind,    // a failed write makes the check force the log out
  kNoSyncOnReadKind,   // a failed read does not
  kSingleCheck,        // one check at a time; what fails meanwhile queues one more
  kSyncRateLimit,      // syncfs at most once in its interval, with one trailing run
  kStatWithoutHandle,  // a directory that could not be opened is checked by its path
  kReadsStop,          // a fenced directory answers reads without a system call
  kReleaseQueue,       // queued and taken tasks go back, pins are dropped
  kHandleClosed,       // after the fence nothing keeps the dead file system busy
  kSuspendOnHang,      // stuck calls suspend the directory
};

#if defined(RAGFS_TEST_HOOKS)

namespace fence_rules_detail {
inline std::atomic<uint32_t> rules_off{0};
}

inline bool fence_rule(FenceRule rule) noexcept {
  return (fence_rules_detail::rules_off.load(std::memory_order_relaxed) >> static_cast<unsigned>(rule) & 1U) == 0;
}

// Takes one rule out of the process while it lives.
class FenceRuleSwitch {
 public:
  explicit FenceRuleSwitch(FenceRule rule) noexcept : bit_(1U << static_cast<unsigned>(rule)) {
    fence_rules_detail::rules_off.fetch_or(bit_);
  }
  ~FenceRuleSwitch() { fence_rules_detail::rules_off.fetch_and(~bit_); }
  FenceRuleSwitch(const FenceRuleSwitch&) = delete;
  FenceRuleSwitch& operator=(const FenceRuleSwitch&) = delete;

 private:
  const uint32_t bit_;
};

#else

constexpr bool fence_rule(FenceRule) noexcept { return true; }

#endif

}  // namespace ragfs
