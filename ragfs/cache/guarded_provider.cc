#include "ragfs/cache/guarded_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>

#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

bool counts_as_failure(const Error& error) {
  return error.code == ErrorCode::unavailable || error.code == ErrorCode::timeout || error.code == ErrorCode::internal;
}

// 75 % to 125 % of `ms`, so that processes do not probe in step.
int64_t with_jitter_ns(int64_t ms) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::uniform_int_distribution<int64_t>(ms * 750'000, ms * 1'250'000)(random);
}

Result<void> at_least(std::string_view field, int64_t value, int64_t least) {
  if (value >= least) return {};
  return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be at least {}", field, value, least));
}

}  // namespace

Result<void> GuardConfig::validate() const {
  if (auto ok = at_least("operation_timeout_ms", operation_timeout_ms, 1); !ok) return ok;
  if (auto ok = at_least("sdk_concurrency", concurrency, 1); !ok) return ok;
  if (auto ok = at_least("breaker.failures_to_open", failures_to_open, 1); !ok) return ok;
  if (auto ok = at_least("breaker.window_ms", window_ms, 1); !ok) return ok;
  if (auto ok = at_least("breaker.first_pause_ms", first_pause_ms, 1); !ok) return ok;
  return at_least("breaker.max_pause_ms", max_pause_ms, first_pause_ms);
}

LatencyHistogram* GuardedProvider::timed(LatencyHistogram& histogram) const {
  constexpr uint32_t kSampling = 64;
  thread_local uint32_t calls = 0;
  return !in_process_ || calls++ % kSampling == 0 ? &histogram : nullptr;
}

class GuardedProvider::Place {
 public:
  explicit Place(GuardedProvider* guard) : guard_(guard) {}
  Place(Place&& other) noexcept : guard_(std::exchange(other.guard_, nullptr)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Place& operator=(Place&&) = delete;
  ~Place() {
    if (guard_ == nullptr) return;
    MutexLock lock(guard_->mutex_);
    --guard_->inside_;
    guard_->place_free_.notify_one();
  }

 private:
  GuardedProvider* guard_;  // nullptr: in-process, nothing to give back
};

GuardedProvider::GuardedProvider(std::shared_ptr<CacheProvider> provider, GuardConfig config)
    : provider_(std::move(provider)),
      capabilities_(provider_->capabilities()),
      config_(config),
      in_process_(capabilities_.zero_copy) {}

Deadline GuardedProvider::call_deadline(Deadline deadline) const {
  if (in_process_) return Deadline::never();
  return Deadline::earlier(deadline, Deadline::in_ms(config_.operation_timeout_ms));
}

Result<GuardedProvider::Place> GuardedProvider::enter(Deadline deadline) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (!admits()) {
    shed_.fetch_add(1, std::memory_order_relaxed);
    return fail(ErrorCode::would_block, fmt::format("cache provider '{}' is bypassed after failures", name()));
  }
  if (in_process_) return Place(nullptr);
  MutexLock lock(mutex_);
  while (inside_ >= config_.concurrency) {
    if (!place_free_.wait_until(mutex_, deadline) && inside_ >= config_.concurrency) {
      errors_[static_cast<size_t>(ErrorCode::would_block)].fetch_add(1, std::memory_order_relaxed);
      return fail(ErrorCode::would_block, fmt::format("no free place for a call to cache provider '{}'", name()));
    }
  }
  ++inside_;
  return Place(this);
}

void GuardedProvider::attach(const std::string& incarnation) {
  MutexLock lock(mutex_);
  incarnation_ = incarnation;
  failures_ = 0;
  note_closed_locked();
  BreakerState detached = BreakerState::detached;
  state_.compare_exchange_strong(detached, BreakerState::closed);
}

void GuardedProvider::change_state(BreakerState to) {
  BreakerState seen = state_.load();
  while (seen != BreakerState::detached && !state_.compare_exchange_weak(seen, to)) {
  }
}

void GuardedProvider::look_at_incarnation() {
  if (!incarnation_changed_ || !rule_enabled(Rule::kEpochOnIncarnation)) return;
  const std::string now = provider_->incarnation();
  {
    MutexLock lock(mutex_);
    if (now == incarnation_) return;
  }
  // First the epoch goes, then others may take this incarnation for the known one.
  incarnation_changed_();
  MutexLock lock(mutex_);
  incarnation_ = now;
}

bool GuardedProvider::probe_if_due() {
  if (state_.load() == BreakerState::detached) return false;
  {
    MutexLock lock(mutex_);
    if (state_.load() == BreakerState::closed) return true;
    if (state_.load() != BreakerState::open || Clock::system().monotonic_ns() < probe_at_ns_) return false;
    change_state(BreakerState::probing);
  }
  probes_.fetch_add(1, std::memory_order_relaxed);
  const Result<void> healthy = provider_->health(Deadline::in_ms(config_.operation_timeout_ms));
  {
    MutexLock lock(mutex_);
    if (!healthy) {
      count_error(healthy.error());
      pause_ms_ = std::min(pause_ms_ * 2, config_.max_pause_ms);
      open_breaker_locked();
      return false;
    }
    failures_ = 0;
    pause_ms_ = 0;
    note_closed_locked();
    change_state(BreakerState::closed);
  }
  if (state_.load() != BreakerState::closed) return false;
  if (returned_) returned_();
  return true;
}

void GuardedProvider::note_closed_locked() {
  if (open_since_ns_ != 0) open_ns_ += Clock::system().monotonic_ns() - open_since_ns_;
  open_since_ns_ = 0;
}

void GuardedProvider::open_breaker_locked() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (open_since_ns_ == 0) open_since_ns_ = now_ns;
  probe_at_ns_ = now_ns + with_jitter_ns(pause_ms_);
  change_state(BreakerState::open);
}

void GuardedProvider::count_error(const Error& error) {
  errors_[static_cast<size_t>(error.code)].fetch_add(1, std::memory_order_relaxed);
}

template <typename T>
void GuardedProvider::note(const Result<T>& result) {
  if (!result) {
    count_error(result.error());
    if (counts_as_failure(result.error())) return count_failure();
  }
  if (!in_process_) worked_.fetch_add(1, std::memory_order_relaxed);
}

template <typename T>
void GuardedProvider::note_batch(std::span<const Result<T>> results) {
  bool failed = false;
  for (const Result<T>& result : results) {
    if (result) continue;
    count_error(result.error());
    failed = failed || counts_as_failure(result.error());
  }
  if (failed) return count_failure();
  if (!in_process_) worked_.fetch_add(1, std::memory_order_relaxed);
}

void GuardedProvider::count_failure() {
  constexpr uint64_t kOneIn = 4;
  const uint64_t worked = worked_.load(std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (state_.load() != BreakerState::closed) return;
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (failures_ == 0 || now_ns - window_began_ns_ > config_.window_ms * 1'000'000) {
    failures_ = 0;
    window_began_ns_ = now_ns;
    worked_at_window_ = worked;
  }
  ++failures_;
  const uint64_t all = failures_ + (worked - std::min(worked, worked_at_window_));
  if (failures_ < config_.failures_to_open || failures_ * kOneIn < all) return;
  opened_.fetch_add(1, std::memory_order_relaxed);
  pause_ms_ = config_.first_pause_ms;
  open_breaker_locked();
}

GetResult GuardedProvider::get(const CacheKey& key, Deadline deadline) {
  if (in_process_ && state_.load(std::memory_order_relaxed) == BreakerState::closed) {
    const LatencyTimer timer(timed(gets_));
    GetResult got = provider_->get(key, Deadline::never());
    if (!got) [[unlikely]]
      note(got);
    return got;
  }
  const Deadline until = call_deadline(deadline);
  Result<Place> place = enter(until);
  if (!place) return std::unexpected(std::move(place.error()));
  GetResult got = [&] {
    const LatencyTimer timer(timed(gets_));
    return provider_->get(key, until);
  }();
  note(got);
  if (!in_process_) look_at_incarnation();
  return got;
}

Result<void> GuardedProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                  Deadline deadline) {
  const Deadline until = call_deadline(deadline);
  Result<Place> place = enter(until);
  if (!place) return std::unexpected(std::move(place.error()));
  Result<void> done = [&] {
    const LatencyTimer timer(timed(puts_));
    return provider_->put(key, value, options, until);
  }();
  note(done);
  if (!in_process_) look_at_incarnation();
  return done;
}

Result<void> GuardedProvider::erase(const CacheKey& key, Deadline deadline) {
  const Deadline until = call_deadline(deadline);
  Result<Place> place = enter(until);
  if (!place) return std::unexpected(std::move(place.error()));
  Result<void> done = [&] {
    const LatencyTimer timer(timed(erases_));
    return provider_->erase(key, until);
  }();
  note(done);
  if (!in_process_) look_at_incarnation();
  return done;
}

template <typename Answer, typename Item, typename Call>
std::vector<Answer> GuardedProvider::in_batches(std::span<const Item> items, Deadline deadline, const Call& call) {
  std::vector<Answer> results;
  results.reserve(items.size());
  while (results.size() < items.size()) {
    const Deadline until = call_deadline(deadline);
    const auto batch =
        items.subspan(results.size()).first(std::min(capabilities_.max_batch_keys, items.size() - results.size()));
    Result<Place> place = enter(until);
    if (!place) {
      for (size_t i = 0; i < batch.size(); ++i) results.push_back(std::unexpected(place.error()));
      continue;
    }
    std::vector<Answer> answers = call(batch, until);
    note_batch(std::span<const Answer>(answers));
    if (!in_process_) look_at_incarnation();
    std::ranges::move(answers, std::back_inserter(results));
  }
  return results;
}

std::vector<GetResult> GuardedProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  return in_batches<GetResult>(keys, deadline, [&](auto batch, Deadline until) {
    const LatencyTimer timer(timed(gets_));
    return provider_->get_many(batch, until);
  });
}

std::vector<Result<void>> GuardedProvider::put_many(std::span<const PutItem> items, Deadline deadline) {
  return in_batches<Result<void>>(items, deadline, [&](auto batch, Deadline until) {
    const LatencyTimer timer(timed(puts_));
    return provider_->put_many(batch, until);
  });
}

Result<void> GuardedProvider::put_atomic(std::span<const PutItem> items, Deadline deadline) {
  const Deadline until = call_deadline(deadline);
  Result<Place> place = enter(until);
  if (!place) return std::unexpected(std::move(place.error()));
  Result<void> done = [&] {
    const LatencyTimer timer(timed(puts_));
    return provider_->put_atomic(items, until);
  }();
  note(done);
  if (!in_process_) look_at_incarnation();
  return done;
}

std::vector<Result<void>> GuardedProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  return in_batches<Result<void>>(keys, deadline, [&](auto batch, Deadline until) {
    const LatencyTimer timer(timed(erases_));
    return provider_->erase_many(batch, until);
  });
}

Result<uint64_t> GuardedProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered) {
  if (state_.load() == BreakerState::detached) {
    return fail(ErrorCode::would_block, fmt::format("cache provider '{}' is not in use now", name()));
  }
  Result<uint64_t> erased = provider_->erase_if(covered, Deadline::never());
  note(erased);
  return erased;
}

Result<uint64_t> GuardedProvider::erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) {
  if (state_.load() == BreakerState::detached) {
    return fail(ErrorCode::would_block, fmt::format("cache provider '{}' is not in use now", name()));
  }
  return provider_->erase_prefixes(prefixes, deadline);
}

BreakerState GuardedProvider::state() const { return state_.load(); }

GuardCounts GuardedProvider::counts() const {
  GuardCounts counts;
  counts.calls = calls_.load();
  counts.shed = shed_.load();
  counts.opened = opened_.load();
  counts.probes = probes_.load();
  {
    MutexLock lock(mutex_);
    const int64_t lasting_ns = open_since_ns_ == 0 ? 0 : Clock::system().monotonic_ns() - open_since_ns_;
    counts.open_ns = static_cast<uint64_t>(open_ns_ + lasting_ns);
  }
  for (size_t i = 0; i < kErrorCodeCount; ++i) counts.errors[i] = errors_[i].load();
  return counts;
}

}  // namespace ragfs
