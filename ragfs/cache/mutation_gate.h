// MutationGate: every mutation passes it, so that a close can wait for those that run and make later ones ask again.
//
// A backend is admitted once (EpochKeeper::admit), then a mutation costs two atomic operations here. close() makes all
// backends ask again: what they are told then decides (the witness moves first, or the mutation is refused).
// Thread-safety: all methods may be called from any thread. admit() runs under no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "ragfs/base/sync.h"
#include "ragfs/cache/epoch_keeper.h"

namespace ragfs {

class MutationGate {
 public:
  // Held while a mutation runs.
  class Pass {
   public:
    explicit Pass(MutationGate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    MutationGate* gate_;
  };

  // Without a keeper everything is admitted.
  explicit MutationGate(EpochKeeper* keeper) : keeper_(keeper), generation_(keeper == nullptr ? 0 : 1) {}

  // Errors: read_only, and the keeper's.
  Result<Pass> enter(BackendDomain& backend);
  // From here on every backend asks the keeper again.
  void close() { generation_.fetch_add(1, std::memory_order_seq_cst); }
  // Waits until no mutation runs; false at the deadline. Those that were admitted after close() are waited for as well.
  bool wait_until_empty(Deadline deadline);
  // In a child of fork(): refuses everything for good. Takes no lock.
  void refuse_in_child() noexcept;

 private:
  void leave();

  EpochKeeper* const keeper_;
  std::atomic<uint64_t> generation_;
  std::atomic<uint64_t> running_{0};
  std::atomic<bool> in_child_{false};
  std::atomic<bool> awaited_{false};
  Mutex mutex_;
  CondVar empty_;
};

}  // namespace ragfs
