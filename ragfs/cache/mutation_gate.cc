#include "ragfs/cache/mutation_gate.h"

#include "ragfs/cache/coherence_domain.h"

namespace ragfs {

Result<MutationGate::Pass> MutationGate::enter(BackendDomain& backend) {
  constexpr int kMostCloses = 8;  // each one makes a mutation ask again
  for (int attempt = 0; attempt < kMostCloses; ++attempt) {
    // Counted before it is asked whether the gate is open: close() then either sees this mutation or is seen by it.
    running_.fetch_add(1, std::memory_order_seq_cst);
    Pass pass(this);
    const uint64_t generation = generation_.load(std::memory_order_seq_cst);
    if (backend.admitted.load(std::memory_order_seq_cst) == generation) return pass;
    if (in_child_.load()) {
      return fail(ErrorCode::read_only, "a child of fork() may not change files through its parent's cache");
    }
    if (auto admitted = keeper_->admit(backend); !admitted) return std::unexpected(std::move(admitted.error()));
    // Of the generation that asked: a close that came between makes it ask once more.
    backend.admitted.store(generation, std::memory_order_seq_cst);
  }
  return fail(ErrorCode::unavailable, "the cache is being closed over and over");
}

void MutationGate::leave() {
  if (running_.fetch_sub(1, std::memory_order_seq_cst) != 1 || !awaited_.load(std::memory_order_seq_cst)) return;
  MutexLock lock(mutex_);
  empty_.notify_all();
}

bool MutationGate::wait_until_empty(Deadline deadline) {
  MutexLock lock(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  while (running_.load(std::memory_order_seq_cst) > 0) {
    if (!empty_.wait_until(mutex_, deadline)) break;
  }
  awaited_.store(false, std::memory_order_seq_cst);
  return running_.load(std::memory_order_seq_cst) == 0;
}

void MutationGate::refuse_in_child() noexcept {
  // A life that had been closed before the fork has no cache to protect: the child asks the keeper like anybody.
  constexpr uint64_t kNeverClosed = 1;
  if (generation_.load() > kNeverClosed) {
    generation_.fetch_add(1);
    return;
  }
  in_child_.store(true);
  generation_.store(UINT64_MAX);
}

}  // namespace ragfs
