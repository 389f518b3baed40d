// Settler: lets records go, and makes erases again that failed. One background thread per coherence domain.
//
// A record of value r may be dropped only when no object older than r can be in the provider any more, or come there:
// every fill that started below r has ended, and after that an erase (or an overwriting put, or a look that found
// nothing older) of its key was confirmed. A mutation that overlaps no older fill settles its own records at once; the
// others are handed over here, with the number of the last fill that may still put (FillRegistry). Erases that failed
// come here too and are made again with doubling, jittered pauses.
//
// Also here: sweeps (a provider that enumerates is cleared of everything that records cover, then all subtree records
// up to that point go), mutations whose outcome is unknown (they stay running until the backend cannot apply them any
// more), and the end of marks.
// Bounds: at most `max_pending` entries; past it a record simply stays, which only refuses more.
// Thread-safety: all methods may be called from any thread. No lock is held across a provider call.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/coherence_domain.h"

namespace ragfs {

// An object that a mutation affected: whose record it is, and the key to erase.
struct AffectedObject {
  RecordPath record;
  ObjectKind kind;
  CacheKey key;
};

class Settler {
 public:
  // Starts the thread. `domain` must outlive it.
  explicit Settler(CoherenceDomain& domain);
  // Ends the thread; what is pending stays undone (its records refuse what is stale as long as the domain lives).
  ~Settler();
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  // Whether the provider confirmed an erase (or an overwriting put) of a key.
  enum class Erased : uint8_t {
    no,       // it is still to be made
    early,    // while an older fill could still put: a look, or a second one, when that has ended
    settled,  // after all of them; only the near tier is left to be cleared, when older copies into it have ended
  };
  // The record `value` of `object` waits for what had begun up to `horizon` to end.
  void add(const AffectedObject& object, uint64_t value, const Horizon& horizon, Erased erased);
  // A mutation that may still land: its running marks come off at `until_ns` (monotonic), with fresh records.
  void add_unknown(std::vector<AffectedObject> objects, int64_t until_ns);
  // A fill ended: something may have become due.
  void fill_ended();

  // Waits until nothing is pending; false at the deadline. For an orderly close, and for tests.
  bool drain(Deadline deadline);
  // Clears the provider of what records cover. Errors: not_supported, or the provider's.
  Result<uint64_t> sweep();

  // In a child of fork(), where the thread is not.
  void let_go_in_child() noexcept { in_child_.store(true); }

  size_t pending() const { return pending_count_.load(std::memory_order_relaxed); }

 private:
  struct Pending {
    AffectedObject object;
    uint64_t value;
    Horizon horizon;  // last fill, and last near copy, that may still put something older
    Erased erased;
    int64_t due_ns;    // of a retry
    int64_t pause_ms;  // before the next one
  };
  struct Unknown {
    std::vector<AffectedObject> objects;
    int64_t until_ns;
  };
  // A point in time for providers that may resurrect: what was stored by the fills that had begun by then has expired
  // one TTL after the last of them ended.
  struct Sample {
    uint64_t clock;
    uint64_t horizon;
    int64_t ended_ns;  // when all fills up to the horizon were seen to have ended; 0 = not yet
  };

  void run();
  // The next entry whose fills have ended, or whose retry is due.
  std::optional<Pending> take_due(int64_t now_ns);
  // When something without a notification becomes due.
  int64_t next_due_ns(int64_t now_ns) RAGFS_REQUIRES(mutex_);
  void settle(Pending entry);
  // True when all that had begun up to `horizon` has ended.
  bool all_ended_through(const Horizon& horizon) const;
  // True when the provider holds nothing older than the entry's value under its key.
  bool confirm(const Pending& entry);
  bool holds_nothing_older(const Pending& entry);
  void finish_unknown(int64_t now_ns);
  void expire(int64_t now_ns);
  void sweep_if_due(int64_t now_ns);

  CoherenceDomain& domain_;
  std::atomic<size_t> pending_count_{0};
  std::atomic<bool> in_child_{false};
  mutable Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  bool woken_ RAGFS_GUARDED_BY(mutex_) = false;
  std::deque<Pending> waiting_ RAGFS_GUARDED_BY(mutex_);  // for fills, in the order of their horizons
  std::deque<Pending> retries_ RAGFS_GUARDED_BY(mutex_);
  std::deque<Unknown> unknown_ RAGFS_GUARDED_BY(mutex_);
  // The thread's own:
  int64_t next_sweep_ns_;
  int64_t next_expiry_ns_;
  std::deque<Sample> samples_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace ragfs
