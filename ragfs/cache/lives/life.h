// Life: one run of the writing process, seen from the provider: how it begins, which epoch it may use, how it ends.
//
// The order of steps is the protocol (docs/design.md 3.6 and 3.9; docs/model.md explores it):
// - start(): reads the witness, the provider's pointer and the marker that the pointer names. Warm, the epoch goes on,
//   only if the pointer's life is the witness's, the marker is there and names the provider's incarnation, and the wall
//   clock has not stepped back. Everything else is a new random epoch.
// - A claim: the witness moves to a fresh life, then the pointer is written with it. Nothing is served before a claim
//   was confirmed. Each attempt takes another fresh life, so a write that lands late names a life that never lived.
// - apart: without a confirmed claim reads and mutations go past the cache; a thread tries again, always with a new
//   epoch. Another incarnation, a lost mark or `new-epoch` end an epoch the same way.
// - The pointer is read again every `pointer_check_ms`, and when the provider had been away. A foreign life in it means
//   another writer: left, until rejoin(). An older one of before: the provider was set back, so what it had confirmed
//   may be undone, and the epoch ends.
// - close(): no fill begins, running ones and mutations end, erases that wait are made, then the marker. It is a
//   promise: admit() moves the witness before the next mutation.
// Only a provider whose objects outlive the process needs pointer and marker; the witness and the locks belong to the
// namespace and are kept without a cache too.
// Thread-safety: all methods may be called from any thread, start() and attach() once, before the others. Steps that
// wait for the disk or the provider run one at a time (a turn), under no mutex.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/lives/clean_marker.h"
#include "ragfs/cache/lives/epoch_pointer.h"
#include "ragfs/cache/lives/identity_lock.h"
#include "ragfs/cache/lives/witness.h"

namespace ragfs {

struct LifeConfig {
  std::string name_space = "openviking";
  std::string state_dir;             // of this machine; "" = none: every start is cold, and no lock is taken
  bool off = false;                  // no cache: the domain stays apart, witness and locks are kept
  bool outlives = true;              // the provider's objects are there in the next life
  bool shared = false;               // other processes with a cache write too: no pointer, every object is checked
  int64_t pointer_check_ms = 5'000;  // between two looks at the pointer
  int64_t call_timeout_ms = 1'000;   // of one call to the provider made here
  int64_t retry_ms = 250;            // between two attempts to join; doubles up to pointer_check_ms
  int attempts_at_start = 3;         // to write the pointer, before the start goes on without the provider

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

enum class LifeStage : uint8_t { apart, joined, left, closed };
std::string_view stage_name(LifeStage stage);

struct LifeReport {
  LifeStage stage = LifeStage::apart;
  bool warm = false;    // it began with the epoch of the life before
  uint64_t claims = 0;  // pointers that were confirmed
  uint64_t claims_failed = 0;
  uint64_t rewritten = 0;  // the pointer was missing, or a late write of this process
  std::string why;         // why it is apart or left; "" otherwise
};

class Life final : public EpochKeeper {
 public:
  // `config` must be valid; `provider`, `files` and `clock` must outlive it.
  Life(LifeConfig config, std::shared_ptr<CacheProvider> provider, PosixFiles& files = PosixFiles::system(),
       const Clock& clock = Clock::system());
  // Ends the thread, and gives locks back. The domain must be gone, or must not be used any more.
  ~Life() override;
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Where the domain begins: warm, in a new epoch, or apart when the provider could not be asked (report().why), as
  // when it is known not to answer. After the hold() of every mount: a process that may not write does not claim the
  // pointer.
  DomainStart start(bool provider_answers = true);
  // The domain that was built from start(). Begins the thread.
  void attach(CoherenceDomain& domain);

  // Takes the lock of a backend that is to be cached: exclusive, or shared where others write it without a cache (so
  // that every object has to be checked), or where `wish` is shared. The kind that is held then. Errors: read_only,
  // naming the holder (before start(): this life stays without the cache); those of the state directory.
  Result<LockKind> hold(uint64_t identity_hash, LockKind wish = LockKind::exclusive);
  // The cache is not to be used, or may not be.
  bool off() const { return config_.off || refused_.load(); }
  // Objects of the provider are there in the next life, so pointer, marker and the thread are needed.
  bool keeps_pointer() const { return config_.outlives && !config_.shared && !off(); }

  uint64_t next_epoch() override;
  void provider_returned() override;
  Result<void> admit(const BackendDomain& backend) override;

  // A new epoch for all objects, in place by the deadline. Errors: unavailable (left, closed), timeout.
  Result<void> new_epoch(Deadline deadline);
  // Back into the cache after another writer was seen. Errors: timeout; unavailable when closed.
  Result<void> rejoin(Deadline deadline);
  // The orderly end; true when the marker was written. Reads and mutations may go on, past the cache. Idempotent.
  Result<bool> close(Deadline deadline);

  LifeReport report() const;
  // The life that the pointer names since the last claim; 0 while that is in doubt. For tests.
  uint64_t life();
  // Ends the thread, and nothing else: before the domain goes without a close().
  void stop_thread();
  // One round of what the thread does: joins, or looks at the pointer. For tests, which need not wait then.
  void tend();

 private:
  class Turn;  // one step at a time
  std::optional<EpochPointer> read_pointer(bool& asked);
  std::optional<CleanMarker> find_marker(const std::optional<EpochPointer>& pointer, const std::string& incarnation);
  bool is_warm(const EpochPointer& pointer, const CleanMarker& marker, const std::string& incarnation) const;
  Result<void> claim(uint64_t epoch, const std::string& incarnation);
  DomainStart join_at_start();
  void join();
  void look_at_pointer();
  bool is_foreign(const EpochPointer& pointer) const;
  // It names what had been replaced by a pointer of this life that was confirmed.
  bool is_set_back(const EpochPointer& pointer) const;
  void leave(const EpochPointer& pointer);
  Result<void> move_witness(uint64_t life);
  // Under a turn, or before start(). Errors: lock_conflict, whose message is the holder; would_block past kMostLocks;
  // those of the system.
  Result<void> take_lock(uint64_t identity_hash, LockKind kind);
  Result<void> lock_for_mutations(uint64_t identity_hash);
  void give_locks_back();
  Result<void> wait_until_joined(Deadline deadline);
  Result<bool> write_marker(Deadline deadline);
  void run();
  void say_why(std::string why);
  // What an operator's command is told that finds no cache to act on.
  std::string why_not(LifeStage stage) const;
  void set_stage(LifeStage stage);
  void let_go_in_child() noexcept;
  Deadline call_deadline() const { return Deadline::in_ms(config_.call_timeout_ms); }

  const LifeConfig config_;
  const std::shared_ptr<CacheProvider> provider_;
  const Clock& clock_;
  const StateDir directory_;
  const Witness witness_;
  const KeySpace keys_;
  const CacheKey pointer_key_;
  const std::string writer_;  // how this process names itself
  const int64_t began_ns_;    // wall clock
  CoherenceDomain* domain_ = nullptr;

  // Under a turn:
  uint64_t old_witness_ = 0;   // what the witness named at the start; 0 = nothing
  uint64_t claimed_life_ = 0;  // of the last confirmed claim; 0 = the last attempt is in doubt
  uint64_t claimed_epoch_ = 0;
  uint64_t seen_at_start_ = 0;  // the life in the pointer that was there before this one
  bool witness_moved_ = false;  // it names a life of this process, and no promise stands against a mutation
  std::string incarnation_;
  std::deque<uint64_t> attempted_;
  std::deque<uint64_t> confirmed_;  // of those

  std::atomic<bool> refused_{false};  // another process holds a backend of this one, so it may not claim the pointer
  std::atomic<bool> in_child_{false};
  static constexpr size_t kMostLocks = 512;
  std::array<std::atomic<int>, kMostLocks> lock_fds_{};  // for the child; 0 = none

  mutable Mutex mutex_;
  CondVar changed_;
  bool turn_taken_ RAGFS_GUARDED_BY(mutex_) = false;
  bool stop_ RAGFS_GUARDED_BY(mutex_) = false;
  bool woken_ RAGFS_GUARDED_BY(mutex_) = false;
  LifeReport report_ RAGFS_GUARDED_BY(mutex_);
  std::map<uint64_t, IdentityLock> locks_ RAGFS_GUARDED_BY(mutex_);
  std::unique_ptr<ForkGuard> fork_guard_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace ragfs
