#include "ragfs/cache/settler.h"

#include <algorithm>
#include <random>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kExpiryEveryNs = 1'000'000'000;
constexpr size_t kMostSamples = 8192;  // of one a second: more than two hours of TTL; older ones wait for the last

int64_t jittered_ns(int64_t ms) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int64_t>(ms * kNsPerMs * 3 / 4, ms * kNsPerMs * 5 / 4)(random);
}

}  // namespace

Settler::Settler(CoherenceDomain& domain)
    : domain_(domain),
      next_sweep_ns_(domain.clock().monotonic_ns() + domain.config().sweep_interval_ms * kNsPerMs),
      next_expiry_ns_(domain.clock().monotonic_ns() + kExpiryEveryNs),
      thread_([this] { run(); }) {}

Settler::~Settler() {
  if (in_child_.load()) {
    thread_.detach();  // there is none to be waited for, and the lock may stand locked
    return;
  }
  {
    MutexLock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void Settler::add(const AffectedObject& object, uint64_t value, const Horizon& horizon, Erased erased) {
  if (pending_count_.load(std::memory_order_relaxed) >= domain_.config().max_pending) {
    domain_.counters().add(CacheCounter::retry_queue_overflow);
    return;  // the record stays: it refuses what is stale for as long as it stands
  }
  const int64_t pause_ms = domain_.config().retry_first_ms;
  MutexLock lock(mutex_);
  pending_count_.fetch_add(1, std::memory_order_relaxed);
  if (erased != Erased::no) {
    waiting_.push_back({object, value, horizon, erased, 0, pause_ms});
  } else {
    const int64_t due_ns = domain_.clock().monotonic_ns() + jittered_ns(pause_ms);
    retries_.push_back({object, value, horizon, erased, due_ns, pause_ms * 2});
  }
  woken_ = true;
  wake_.notify_one();
}

void Settler::add_unknown(std::vector<AffectedObject> objects, int64_t until_ns) {
  MutexLock lock(mutex_);
  pending_count_.fetch_add(1, std::memory_order_relaxed);
  unknown_.push_back({std::move(objects), until_ns});
  woken_ = true;
  wake_.notify_one();
}

void Settler::fill_ended() {
  if (pending_count_.load(std::memory_order_seq_cst) == 0) return;
  MutexLock lock(mutex_);
  if (waiting_.empty()) return;
  woken_ = true;
  wake_.notify_one();
}

bool Settler::drain(Deadline deadline) {
  MutexLock lock(mutex_);
  while (pending_count_.load() > 0) {
    if (!idle_.wait_until(mutex_, deadline)) return pending_count_.load() == 0;
  }
  return true;
}

void Settler::run() {
  while (true) {
    const int64_t now_ns = domain_.clock().monotonic_ns();
    while (std::optional<Pending> entry = take_due(now_ns)) settle(*std::move(entry));
    finish_unknown(now_ns);
    if (now_ns >= next_expiry_ns_) expire(now_ns);
    sweep_if_due(now_ns);

    MutexLock lock(mutex_);
    if (pending_count_.load() == 0) idle_.notify_all();
    if (stop_) return;
    if (!woken_) {
      // A test's clock may stand still, so the wait is bounded by real time too.
      const int64_t wait_ns = std::clamp<int64_t>(next_due_ns(now_ns) - now_ns, kNsPerMs, kExpiryEveryNs);
      wake_.wait_until(mutex_, Deadline::in_ns(wait_ns));
    }
    woken_ = false;
    if (stop_) return;
  }
}

std::optional<Settler::Pending> Settler::take_due(int64_t now_ns) {
  MutexLock lock(mutex_);
  if (stop_) return std::nullopt;
  if (!waiting_.empty() && all_ended_through(waiting_.front().horizon)) {
    Pending entry = std::move(waiting_.front());
    waiting_.pop_front();
    return entry;
  }
  const auto due = std::ranges::find_if(retries_, [&](const Pending& at) { return at.due_ns <= now_ns; });
  if (due == retries_.end()) return std::nullopt;
  Pending entry = std::move(*due);
  retries_.erase(due);
  return entry;
}

bool Settler::all_ended_through(const Horizon& horizon) const {
  return domain_.fills().all_ended_through(horizon.fills) && domain_.copies().all_ended_through(horizon.copies);
}

int64_t Settler::next_due_ns(int64_t now_ns) {
  int64_t next = std::min(next_expiry_ns_, now_ns + kExpiryEveryNs);
  for (const Pending& at : retries_) next = std::min(next, at.due_ns);
  for (const Unknown& at : unknown_) next = std::min(next, at.until_ns);
  return next;
}

void Settler::settle(Pending entry) {
  MutationTable& table = domain_.table();
  const bool superseded = table.observe_exactly(entry.object.record.trail, entry.object.kind).newest() > entry.value;
  // A newer mutation of the same object takes care of its key, and of this one's with it.
  if (!superseded) {
    // Asked before the erases are made.
    const bool fills_ended =
        domain_.fills().all_ended_through(entry.horizon.fills) || !rule_enabled(Rule::kSecondErase);
    const bool copies_ended =
        domain_.copies().all_ended_through(entry.horizon.copies) || !rule_enabled(Rule::kSecondErase);
    if (domain_.near() != nullptr && rule_enabled(Rule::kNearErase)) domain_.near()->erase(entry.object.key);
    if (!confirm(entry)) {
      entry.erased = Erased::no;
      entry.due_ns = domain_.clock().monotonic_ns() + jittered_ns(entry.pause_ms);
      entry.pause_ms = std::min(entry.pause_ms * 2, domain_.config().retry_most_ms);
      MutexLock lock(mutex_);
      retries_.push_back(std::move(entry));
      return;
    }
    entry.erased = fills_ended ? Erased::settled : Erased::early;
    if (!fills_ended || !copies_ended) {
      MutexLock lock(mutex_);
      waiting_.push_back(std::move(entry));
      return;
    }
    const bool may_return =
        domain_.provider().capabilities().may_resurrect && rule_enabled(Rule::kResurrectKeepsRecords);
    if (ends_absence(entry.object.kind)) domain_.negatives().forget(entry.object.record.trail.self());
    if (!may_return) table.drop(entry.object.record.trail, entry.object.kind, entry.value);
  }
  pending_count_.fetch_sub(1);
}

bool Settler::confirm(const Pending& entry) {
  if (entry.erased == Erased::settled) return true;
  if (entry.erased == Erased::early && holds_nothing_older(entry)) return true;
  domain_.counters().add(entry.erased == Erased::early ? CacheCounter::second_erase : CacheCounter::delete_retried);
  RAGFS_PAUSE_POINT("settler.before_erase");
  return domain_.provider().erase(entry.object.key, Deadline::never()).has_value();
}

// All fills that could put something older have ended when this is asked, so what is there now is what remains. Worth
// it only where a look costs no round trip; it spares the object that a later fill or write has put there.
bool Settler::holds_nothing_older(const Pending& entry) {
  if (!domain_.provider().capabilities().zero_copy) return false;
  if (!domain_.fills().all_ended_through(entry.horizon.fills)) return false;
  const GetResult got = domain_.provider().get(entry.object.key, Deadline::never());
  if (!got) return false;
  if (!got->has_value()) return true;
  const std::optional<DecodedEnvelope> decoded = decode_envelope((*got)->view(), false);
  return decoded && decoded->info.stamp >= entry.value;
}

void Settler::finish_unknown(int64_t now_ns) {
  std::vector<AffectedObject> objects;
  size_t finished = 0;
  {
    MutexLock lock(mutex_);
    for (auto at = unknown_.begin(); at != unknown_.end();) {
      if (at->until_ns > now_ns) {
        ++at;
        continue;
      }
      std::ranges::move(at->objects, std::back_inserter(objects));
      at = unknown_.erase(at);
      ++finished;
    }
  }
  if (finished == 0) return;
  RAGFS_PAUSE_POINT("settler.before_finish_unknown");
  const uint64_t value = domain_.table().advance_clock();
  for (const AffectedObject& object : objects) domain_.table().end(object.record, object.kind, value);
  const Horizon horizon = domain_.horizon();
  for (const AffectedObject& object : objects) {
    if (object.kind != ObjectKind::subtree) add(object, value, horizon, Erased::no);
  }
  pending_count_.fetch_sub(finished);
}

void Settler::expire(int64_t now_ns) {
  next_expiry_ns_ = now_ns + kExpiryEveryNs;
  MutationTable& table = domain_.table();
  if (table.marked() > 0) table.expire_marks(now_ns);
  const int64_t ttl_ns = domain_.config().default_ttl_ms * kNsPerMs;
  if (ttl_ns == 0 || !domain_.provider().capabilities().may_resurrect) return;
  if (samples_.size() < kMostSamples) samples_.push_back({table.clock(), domain_.fills().last_issued(), 0});
  for (Sample& sample : samples_) {
    if (sample.ended_ns != 0) continue;
    if (!domain_.fills().all_ended_through(sample.horizon)) break;
    sample.ended_ns = now_ns;
  }
  // What such a fill stored, it stored before its end was seen: a TTL later it has expired.
  while (!samples_.empty() && samples_.front().ended_ns != 0 && samples_.front().ended_ns + ttl_ns < now_ns) {
    table.drop_all_through(samples_.front().clock);
    samples_.pop_front();
  }
}

Result<uint64_t> Settler::sweep() {
  MutationTable& table = domain_.table();
  const uint64_t through = table.clock();
  const Horizon horizon = domain_.horizon();
  if (!all_ended_through(horizon) && rule_enabled(Rule::kSweepAfterFills)) {
    return fail(ErrorCode::would_block, "reads are being stored; sweep again when they have ended");
  }
  const auto covered = [&](std::string_view key, std::string_view value) {
    // Another namespace's objects have stamps of another clock.
    if (!domain_.owns(key)) return false;
    const std::optional<DecodedEnvelope> decoded = decode_envelope(value, false);
    if (!decoded || decoded->info.kind == ObjectKind::subtree || !PathView::is_normal(decoded->info.path)) return false;
    const std::shared_ptr<BackendDomain> backend = domain_.backend_by_hash(decoded->info.identity_hash);
    if (!backend) return false;
    const PathTrail trail(backend->root_id, PathView::from_normal(decoded->info.path));
    return decoded->info.stamp < table.observe_exactly(trail, decoded->info.kind).newest();
  };
  Result<uint64_t> erased = domain_.provider().erase_if(covered);
  if (!erased) return erased;
  if (domain_.near() != nullptr) domain_.near()->erase_if(covered);
  domain_.negatives().clear();
  // A marked key below a subtree may still get an old object: as long as there is any mark, subtree records stay.
  const bool may_return = domain_.provider().capabilities().may_resurrect && rule_enabled(Rule::kResurrectKeepsRecords);
  if (table.marked() == 0 && !may_return) table.drop_all_through(through);
  return erased;
}

void Settler::sweep_if_due(int64_t now_ns) {
  if (!domain_.provider().capabilities().enumerates) return;
  const size_t subtrees = domain_.table().subtree_records();
  if (subtrees == 0) return;
  const bool many = subtrees >= domain_.config().sweep_records;
  const bool due = domain_.config().sweep_interval_ms > 0 && now_ns >= next_sweep_ns_;
  if (!many && !due) return;
  if (sweep()) next_sweep_ns_ = domain_.clock().monotonic_ns() + domain_.config().sweep_interval_ms * kNsPerMs;
}

}  // namespace ragfs
