#include "ragfs/cache/mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/rules.h"

namespace ragfs {

MutationPlan::MutationPlan(const CoherenceDomain& domain, std::shared_ptr<BackendDomain> backend,
                           const FileSystemTraits& traits)
    : domain_(domain), backend_(std::move(backend)), traits_(traits) {
  objects_.reserve(4);
}

void MutationPlan::add(PathView path, ObjectKind kind) {
  CachePath at(*backend_, path);
  const CacheKey key = domain_.key(at, kind);
  // A listing may be affected from two sides (rename in one directory): once is enough.
  const bool known = std::ranges::any_of(objects_, [&](const AffectedObject& object) { return object.key == key; });
  if (!known) objects_.push_back({RecordPath(backend_->root_id, path), kind, key});
}

void MutationPlan::add_listings_above(PathView path) {
  if (path.is_root()) return;
  const PathView parent = path.parent();
  if (rule_enabled(Rule::kParentListing)) add(parent, ObjectKind::listing);
  if (traits_.directory_times && !parent.is_root() && rule_enabled(Rule::kGrandparentListing)) {
    add(parent.parent(), ObjectKind::listing);
  }
  if (traits_.implicit_directories) affect_ancestors(path);
}

void MutationPlan::affect_path(PathView path) {
  add(path, ObjectKind::file);
  add(path, ObjectKind::listing);
  add_listings_above(path);
}

void MutationPlan::affect_file(PathView path) {
  add(path, ObjectKind::file);
  add_listings_above(path);
}

void MutationPlan::affect_subtree(PathView path) {
  add(path, ObjectKind::subtree);
  add(path, ObjectKind::file);
  add(path, ObjectKind::listing);
  add_listings_above(path);
  subtrees_.emplace_back(path.text());
}

void MutationPlan::affect_ancestors(PathView path) {
  if (!rule_enabled(Rule::kCreatedAncestors)) return;
  for (PathView at = path; !at.is_root();) {
    at = at.parent();
    add(at, ObjectKind::listing);  // ends what is known of its absence too
  }
}

Result<Mutation> Mutation::begin(CoherenceDomain& domain, MutationPlan plan, Deadline deadline,
                                 const std::function<void(MutationPlan&)>& complete) {
  Result<MutationGate::Pass> pass = domain.gate().enter(*plan.backend_);
  if (!pass) return std::unexpected(std::move(pass.error()));
  if (domain.config().failure_mode == FailureMode::strict && !domain.provider().admits()) {
    return fail(ErrorCode::unavailable, "strict mode: the cache cannot be updated, so nothing was changed");
  }
  const Deadline until = deadline.is_never() ? Deadline::in_ms(domain.config().mutation_lock_timeout_ms) : deadline;
  Result<PathLockTable::Held> lock = plan.backend_->mutation_locks.acquire(plan.locks_, until);
  if (!lock) return std::unexpected(std::move(lock.error()));
  if (!rule_enabled(Rule::kMutationLockHeld)) lock->release();
  if (complete) complete(plan);
  Mutation mutation(domain, std::move(plan), *std::move(pass), *std::move(lock));
  mutation.look_for_late_calls();
  for (const AffectedObject& object : mutation.plan_.objects_) domain.table().begin(object.record, object.kind);
  RAGFS_PAUSE_POINT("mutation.marked");
  return mutation;
}

Mutation::Mutation(CoherenceDomain& domain, MutationPlan plan, MutationGate::Pass pass, PathLockTable::Held lock)
    : domain_(&domain),
      plan_(std::move(plan)),
      pass_(std::move(pass)),
      lock_(std::move(lock)),
      began_ns_(domain.now_ns()) {}

Mutation::Mutation(Mutation&& other) noexcept
    : domain_(std::exchange(other.domain_, nullptr)),
      plan_(std::move(other.plan_)),
      pass_(std::move(other.pass_)),
      lock_(std::move(other.lock_)),
      state_(other.state_),
      began_ns_(other.began_ns_),
      stamp_(other.stamp_),
      horizon_(other.horizon_),
      beside_late_call_(other.beside_late_call_),
      fills_ended_(other.fills_ended_),
      copies_ended_(other.copies_ended_) {}

Mutation::~Mutation() {
  if (domain_ == nullptr || state_ == State::published) return;
  if (state_ == State::marked) settle();
  for (const AffectedObject& object : plan_.objects_) {
    if (object.kind != ObjectKind::subtree) domain_->settler().add(object, stamp_, horizon_, Settler::Erased::no);
  }
}

// The lock keeps other mutations of the path away, so what still runs there now is a call that has returned and may
// land yet. It may land after this mutation, and be let go before this mutation's put: the put would then outlive it.
void Mutation::look_for_late_calls() {
  if (plan_.traits_.late_apply_bound_ms == 0) return;
  const MutationTable& table = domain_->table();
  for (const AffectedObject& object : plan_.objects_) {
    if (object.kind != ObjectKind::file) continue;
    Observation seen = table.observe(object.record.trail, object.kind);
    if (seen.running() && !seen.exact) seen = table.observe_exactly(object.record.trail, object.kind);
    beside_late_call_ = beside_late_call_ || seen.running();
  }
}

void Mutation::abandon() {
  for (const AffectedObject& object : plan_.objects_) domain_->table().abandon(object.record, object.kind);
  state_ = State::published;
}

void Mutation::settle(bool may_still_land, int64_t late_apply_bound_ms) {
  RAGFS_PAUSE_POINT("mutation.before_settle");
  MutationTable& table = domain_->table();
  stamp_ = table.advance_clock();
  RAGFS_PAUSE_POINT("mutation.clock_advanced");
  const bool stays_running =
      may_still_land && late_apply_bound_ms > 0 && rule_enabled(Rule::kUnknownBackendKeepsRunning);
  for (const AffectedObject& object : plan_.objects_) {
    if (stays_running) {
      table.record(object.record, object.kind, stamp_);
    } else {
      table.end(object.record, object.kind, stamp_);
    }
    if (object.kind == ObjectKind::file) domain_->file_flights().forget(object.key);
    if (object.kind == ObjectKind::listing) domain_->listing_flights().forget(object.key);
    if (ends_absence(object.kind)) domain_->negatives().forget(object.record.trail.self());
  }
  if (!plan_.subtrees_.empty()) domain_->negatives().clear();
  // After the records are set: a fill that begins from here on starts at or above the stamp.
  horizon_ = domain_->horizon();
  state_ = State::settled;
  if (stays_running) {
    const int64_t until_ns = domain_->clock().monotonic_ns() + late_apply_bound_ms * 1'000'000;
    domain_->settler().add_unknown(plan_.objects_, until_ns);
  }
  table.enforce_limits();
  if (table.overflowed()) domain_->new_epoch();
  RAGFS_PAUSE_POINT("mutation.settled");
}

PutItem Mutation::item_of(const NewValue& value, uint64_t epoch, std::string& header) const {
  EnvelopeInfo info;
  info.kind = ObjectKind::file;
  info.identity_hash = plan_.backend_->identity_hash;
  info.epoch = epoch ^ plan_.backend_->write_term;
  info.stamp = stamp_;
  // What somebody else wrote right after our backend call must not be hidden for longer than `revalidate`.
  info.filled_at_ns = rule_enabled(Rule::kFilledAtBeforeBackend) ? began_ns_ : domain_->now_ns();
  info.expires_at_ns = domain_->expiry_ns(info.filled_at_ns);
  info.size = value.meta.size;
  info.mtime_ns = value.meta.mtime_ns;
  info.mode = value.meta.mode;
  info.path = value.path.text();
  info.version = value.meta.version;
  PutOptions options = value.options;
  options.ttl_ms = domain_->config().default_ttl_ms;
  header = encode_envelope(info, value.data);
  return {domain_->key(CachePath(*plan_.backend_, value.path), ObjectKind::file), {header, value.data}, options};
}

Mutation::PutOutcome Mutation::outcome_of(const NewValue& value, uint64_t epoch, const Result<void>& stored) {
  if (stored) {
    domain_->counters().add(CacheCounter::set);
    return PutOutcome::stored;
  }
  domain_->counters().add(CacheCounter::set_failed);
  // A provider that says no (too large, full) has not been harmed: erasing the old value is all there is to do.
  if (!outcome_unknown(stored.error())) return PutOutcome::refused;
  domain_->mark_unknown_put(RecordPath(plan_.backend_->root_id, value.path), ObjectKind::file, epoch);
  return PutOutcome::failed;
}

std::vector<Mutation::PutOutcome> Mutation::put(std::span<const NewValue> values, Deadline deadline) {
  const uint64_t epoch = domain_->epoch();
  if (values.empty() || !CoherenceDomain::is_real_epoch(epoch)) return {values.size(), PutOutcome::refused};
  std::vector<std::string> headers(values.size());
  std::vector<PutItem> items;
  items.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    items.push_back(item_of(values[i], epoch, headers[i]));
    // Whatever becomes of the provider's copy: this is the newest value, and no other mutation of it runs.
    domain_->keep_near(*plan_.backend_, items[i].key, items[i].value, items[i].options);
  }
  GuardedProvider& provider = domain_->provider();
  std::vector<Result<void>> stored;
  if (items.size() == 1) {
    stored.push_back(provider.put(items[0].key, items[0].value, items[0].options, deadline));
  } else if (items.size() <= provider.capabilities().atomic_put) {
    stored.assign(items.size(), provider.put_atomic(items, deadline));
  } else {
    stored = provider.put_many(items, deadline);
  }
  std::vector<PutOutcome> outcomes;
  outcomes.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) outcomes.push_back(outcome_of(values[i], epoch, stored[i]));
  return outcomes;
}

void Mutation::let_go(const AffectedObject& object, bool erased) {
  if (!erased) {
    domain_->counters().add(CacheCounter::delete_failed);
    if (rule_enabled(Rule::kRecordsSurviveFailedErase)) {
      domain_->settler().add(object, stamp_, horizon_, Settler::Erased::no);
      return;
    }
  }
  const bool may_return =
      domain_->provider().capabilities().may_resurrect && rule_enabled(Rule::kResurrectKeepsRecords);
  if (may_return) return;
  if ((fills_ended_ && copies_ended_) || !rule_enabled(Rule::kSecondErase)) {
    // A fill that had ended by then may have remembered the path as absent after settle() forgot it.
    if (ends_absence(object.kind)) domain_->negatives().forget(object.record.trail.self());
    domain_->table().drop(object.record.trail, object.kind, stamp_);
  } else {
    domain_->settler().add(object, stamp_, horizon_, fills_ended_ ? Settler::Erased::settled : Settler::Erased::early);
  }
}

bool Mutation::erase_all(std::span<const CacheKey> stored, Deadline deadline) {
  std::vector<CacheKey> keys;
  std::vector<const AffectedObject*> objects;
  keys.reserve(plan_.objects_.size());
  objects.reserve(plan_.objects_.size());
  for (const AffectedObject& object : plan_.objects_) {
    if (object.kind == ObjectKind::subtree) continue;
    if (std::ranges::find(stored, object.key) != stored.end()) {
      let_go(object, true);
      continue;
    }
    keys.push_back(object.key);
    objects.push_back(&object);
  }
  // Apart, there is nothing to erase: whatever the provider holds is of an epoch that is over.
  const std::vector<Result<void>> results =
      domain_->apart() ? std::vector<Result<void>>(keys.size()) : domain_->provider().erase_many(keys, deadline);
  uint64_t confirmed = 0;
  for (size_t i = 0; i < objects.size(); ++i) {
    const bool erased = results[i].has_value();
    confirmed += erased ? 1 : 0;
    let_go(*objects[i], erased);
  }
  domain_->counters().add(CacheCounter::invalidation, plan_.objects_.size());
  domain_->counters().add(CacheCounter::delete_, confirmed);
  return confirmed == objects.size();
}

void Mutation::publish_subtrees(Deadline deadline) {
  if (domain_->apart()) return;
  for (const std::string& text : plan_.subtrees_) {
    const PathView path = PathView::from_normal(text);
    EnvelopeInfo info;
    info.kind = ObjectKind::subtree;
    info.identity_hash = plan_.backend_->identity_hash;
    info.epoch = domain_->epoch();
    info.stamp = stamp_;
    info.filled_at_ns = domain_->now_ns();
    info.scope_generation = stamp_;
    info.path = path.text();
    char generation[sizeof stamp_];
    std::memcpy(generation, &stamp_, sizeof stamp_);
    const std::string_view payload(generation, sizeof generation);
    const CacheKey key = domain_->key(CachePath(*plan_.backend_, path), ObjectKind::subtree);
    const Result<void> stored = domain_->provider().put(key, {encode_envelope(info, payload), payload}, {}, deadline);
    domain_->counters().add(stored ? CacheCounter::subtree_generation_bump
                                   : CacheCounter::subtree_generation_bump_failed);
  }
}

void Mutation::erase_near() {
  if (domain_->near() == nullptr || !rule_enabled(Rule::kNearErase)) return;
  for (const AffectedObject& object : plan_.objects_) {
    if (object.kind != ObjectKind::subtree) domain_->near()->erase(object.key);
  }
}

Result<void> Mutation::publish(std::span<const NewValue> values, Deadline deadline) {
  RAGFS_PAUSE_POINT("mutation.before_publish");
  if (!rule_enabled(Rule::kLocalEraseAfterFills)) erase_near();
  RAGFS_PAUSE_POINT("mutation.before_asking_fills");
  // Asked before the puts and erases are issued: only what is issued after those fills settles the records.
  fills_ended_ = domain_->fills().all_ended_through(horizon_.fills);
  copies_ended_ = domain_->copies().all_ended_through(horizon_.copies);
  if (rule_enabled(Rule::kLocalEraseAfterFills)) erase_near();
  if (beside_late_call_ && rule_enabled(Rule::kNoPutBesideLateCall)) values = {};
  const std::vector<PutOutcome> outcomes = put(values, deadline);
  std::vector<CacheKey> stored;
  bool updated = true;
  for (size_t i = 0; i < values.size(); ++i) {
    if (outcomes[i] == PutOutcome::failed) updated = false;
    if (outcomes[i] != PutOutcome::stored) continue;
    stored.push_back(domain_->key(CachePath(*plan_.backend_, values[i].path), ObjectKind::file));
  }
  updated = erase_all(stored, deadline) && updated;
  publish_subtrees(deadline);
  state_ = State::published;
  if (updated || domain_->config().failure_mode == FailureMode::bypass) return {};
  domain_->counters().add(CacheCounter::cache_not_updated);
  return fail(ErrorCode::cache_not_updated,
              "the backend was changed, but the cache could not be told; do not repeat the operation");
}

}  // namespace ragfs
