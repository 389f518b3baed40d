// Context: what one call carries through all layers. Deadline: until when it may wait.
//
// For: the caller's account, its lock lease, its flags and its deadline. A Context is made by an interface (CLI, HTTP,
// Python) for one call and passed by const reference. Not for: configuration, or anything that outlives the call.
// Thread-safety: a Context belongs to one call; helpers that a call starts get a copy.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "ragfs/base/clock.h"

namespace ragfs {

// A point of Clock::system()'s monotonic time. Value type.
class Deadline {
 public:
  // Never expires.
  constexpr Deadline() = default;
  static Deadline in_ms(int64_t ms) { return in_ns(ms * 1'000'000); }
  static Deadline in_ns(int64_t ns) { return Deadline(Clock::system().monotonic_ns() + ns); }
  static constexpr Deadline at_ns(int64_t monotonic_ns) { return Deadline(monotonic_ns); }
  static constexpr Deadline never() { return Deadline(); }

  bool is_never() const { return at_ns_ == kNever; }
  bool expired() const { return !is_never() && Clock::system().monotonic_ns() >= at_ns_; }
  // Nanoseconds left; 0 when expired; the largest int64 when it never expires.
  int64_t remaining_ns() const;
  int64_t at_monotonic_ns() const { return at_ns_; }
  // The earlier of two.
  static Deadline earlier(Deadline a, Deadline b) { return a.at_ns_ < b.at_ns_ ? a : b; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  constexpr explicit Deadline(int64_t at_ns) : at_ns_(at_ns) {}
  int64_t at_ns_ = kNever;
};

inline int64_t Deadline::remaining_ns() const {
  if (is_never()) return kNever;
  const int64_t left = at_ns_ - Clock::system().monotonic_ns();
  return left > 0 ? left : 0;
}

struct Context {
  std::string account;                 // tenant of the caller; "" where the interface has none
  std::string lease_ref;               // a path-lock lease that covers this call's mutations; "" = none
  Deadline deadline;                   // for every wait made on the call's behalf
  bool bypass_cache = false;           // read, stat, ls, exists: ask the backend; the answer may still be cached
  bool disable_auto_pathlock = false;  // mutate without taking the user path lock (the mutation lock is still taken)

  // Set by a backend that reached a path of this call through a symlink: the answer must not be cached, and what was
  // changed has another name too. Whoever asks resets it first.
  mutable bool via_symlink = false;

  // The two statistics layers of one call share one pair of clock reads: the outer sets it, the inner reads it.
  // 0 = this call's latency is not sampled.
  mutable int64_t sampled_start_ns = 0;

  // For a piece of this call that runs beside others: the same caller and deadline, nothing noted yet. What the call
  // notes is not even read: another piece may just be noting it.
  Context for_piece() const {
    return {.account = account,
            .lease_ref = lease_ref,
            .deadline = deadline,
            .bypass_cache = bypass_cache,
            .disable_auto_pathlock = disable_auto_pathlock};
  }
};

}  // namespace ragfs
