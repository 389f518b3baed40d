// Mutation: the write side of the coherence protocol (docs/design.md 3.2), as one object per mutation.
//
// States and legal order: begin() takes the mutation lock and marks everything affected as running -> the caller does
// the backend operation -> settle() advances the clock, sets the records, forgets flights and unmarks, whatever the
// backend returned -> publish() stores the new value or erases, and hands over what could not be done -> destroyed, the
// lock goes. A Mutation destroyed after begin() without settle() (an exception in a backend) settles itself and leaves
// the erases to the settler; abandon() is for a mutation that did not reach the backend at all.
//
// Why the lock is held to the end: two write-through puts of one path must reach the provider in the order of their
// backend writes, or the older could stay behind a record that was let go.
// Thread-safety: a Mutation belongs to the thread that runs the operation.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/settler.h"

namespace ragfs {

// What a mutation affects. Built by the caller from its operation, then given to begin().
class MutationPlan {
 public:
  MutationPlan(const CoherenceDomain& domain, std::shared_ptr<BackendDomain> backend, const FileSystemTraits& traits);

  void lock(PathView path, PathLockKind kind) { locks_.push_back({path, kind}); }
  // The file object and the listing of `path`, and the listings above that show it.
  void affect_path(PathView path);
  // The file object alone (a write to what is or becomes a file), and the listings above that show it.
  void affect_file(PathView path);
  // Everything at and below `path`, and the listings above that show it.
  void affect_subtree(PathView path);
  // Every ancestor of `path`: they may be created, or in stores with implicit directories vanish, on the way.
  void affect_ancestors(PathView path);

 private:
  friend class Mutation;
  void add(PathView path, ObjectKind kind);
  void add_listings_above(PathView path);

  const CoherenceDomain& domain_;
  std::shared_ptr<BackendDomain> backend_;
  const FileSystemTraits& traits_;
  std::vector<PathLockRequest> locks_;
  std::vector<AffectedObject> objects_;
  std::vector<CacheKey> subtree_keys_;
  std::vector<std::string> subtrees_;
};

// A whole-file write's new value, for the write-through put.
struct NewValue {
  PathView path;
  std::string_view data;
  FileMeta meta;
  PutOptions options;
};

class Mutation {
 public:
  // Errors: timeout (the lock), would_block (too many wait), unavailable (strict mode with the breaker open: nothing
  // was changed), read_only and others of the gate. `complete`, when given, runs under the lock and adds what is
  // affected (what a rename moves is known only then).
  static Result<Mutation> begin(CoherenceDomain& domain, MutationPlan plan, Deadline deadline,
                                const std::function<void(MutationPlan&)>& complete = {});
  Mutation(Mutation&& other) noexcept;
  Mutation(const Mutation&) = delete;
  Mutation& operator=(const Mutation&) = delete;
  Mutation& operator=(Mutation&&) = delete;
  ~Mutation();

  // Step 4. `may_still_land`: the backend timed out and may apply the operation until `late_apply_bound_ms` have
  // passed.
  void settle(bool may_still_land = false, int64_t late_apply_bound_ms = 0);
  // Steps 5 and 6, after settle(). `values`, of the plan's files, are stored (several of them by one atomic put where
  // the provider takes so many), the rest of what is affected is erased. Errors: cache_not_updated in strict mode when
  // the provider did not take all of it.
  Result<void> publish(std::span<const NewValue> values, Deadline deadline);
  // The operation did not reach the backend: no record, no erase.
  void abandon();

  // The clock value of the mutation, after settle().
  uint64_t stamp() const { return stamp_; }

 private:
  enum class State : uint8_t { marked, settled, published };
  Mutation(CoherenceDomain& domain, MutationPlan plan, MutationGate::Pass pass, PathLockTable::Held lock);
  enum class PutOutcome : uint8_t { stored, refused, failed };
  // The object of a value, and its header.
  PutItem item_of(const NewValue& value, uint64_t epoch, std::string& header) const;
  std::vector<PutOutcome> put(std::span<const NewValue> values, Deadline deadline);
  PutOutcome outcome_of(const NewValue& value, uint64_t epoch, const Result<void>& stored);
  // `stored`: what the provider took, which is not erased.
  bool erase_all(std::span<const CacheKey> stored, Deadline deadline);
  void publish_subtrees(Deadline deadline);
  void let_go(const AffectedObject& object, bool erased);
  void erase_near();
  void look_for_late_calls();

  CoherenceDomain* domain_;
  MutationPlan plan_;
  MutationGate::Pass pass_;
  PathLockTable::Held lock_;
  State state_ = State::marked;
  int64_t began_ns_;  // on the domain's now_ns(), before the backend call
  uint64_t stamp_ = 0;
  Horizon horizon_;                // last fill, and last near copy, that may still put something older than stamp_
  bool beside_late_call_ = false;  // when it began, an older call of its path could still land
  bool fills_ended_ = false;       // when the erases were issued, no fill up to the horizon was running
  bool copies_ended_ = false;      // and no near copy
};

}  // namespace ragfs
