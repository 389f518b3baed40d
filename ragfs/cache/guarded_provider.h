// GuardedProvider: a provider that cannot hurt its callers: deadlines, a bound on concurrent calls, a circuit breaker,
// and a counter per kind of error.
//
// Breaker. closed: calls go through; `failures_to_open` failures within `window_ms` open it, if they are a quarter or
// more of the window's calls (a busy engine that loses one call in twenty stays in use). open: calls fail at once with
// `would_block`, which says that nothing was sent, so that no put is in doubt; after a pause with jitter (doubling up
// to `max_pause_ms`) one caller probes with health(). The probe's success closes it, its failure opens it again.
// Failures are unavailable, timeout and internal; what is the caller's fault (invalid_argument, too_large) or says that
// the engine works (full, invalid_data) is not. An in-process provider (zero_copy) cannot block: it takes neither
// deadline nor gate, so a hit reads no clock. Thread-safety: all methods may be called from any thread. No lock is held
// while the provider works.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/base/latency_histogram.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/provider.h"

namespace ragfs {

struct GuardConfig {
  int64_t operation_timeout_ms = 50;  // for a whole call, its wait for a place included
  uint32_t concurrency = 16;          // most calls inside a provider that is not in-process
  uint32_t failures_to_open = 5;      // within window_ms
  int64_t window_ms = 1'000;
  int64_t first_pause_ms = 100;  // before the first probe
  int64_t max_pause_ms = 5'000;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

// detached: nothing goes through and nothing probes, until attach() (the cache is in no epoch).
enum class BreakerState : uint8_t { closed, open, probing, detached };

// Calls of each kind, a batch being one; of an in-process provider 1 in 64.
struct GuardLatencies {
  LatencySnapshot gets;
  LatencySnapshot puts;
  LatencySnapshot erases;
};

struct GuardCounts {
  uint64_t calls = 0;
  uint64_t shed = 0;    // answered by the open breaker
  uint64_t opened = 0;  // closed -> open
  uint64_t probes = 0;
  uint64_t open_ns = 0;                            // time with the breaker not closed, so far
  std::array<uint64_t, kErrorCodeCount> errors{};  // by kind
};

class GuardedProvider {
 public:
  // `config` must be valid.
  GuardedProvider(std::shared_ptr<CacheProvider> provider, GuardConfig config);

  std::string_view name() const { return provider_->name(); }
  const ProviderCapabilities& capabilities() const { return capabilities_; }
  std::string incarnation() const { return provider_->incarnation(); }
  // False while the breaker keeps calls away. Probes when that is due, so it may take one health().
  bool admits() { return state_.load(std::memory_order_acquire) == BreakerState::closed || probe_if_due(); }
  CacheProvider& provider() { return *provider_; }

  // `changed` is called when an answer came from another incarnation than the one given to attach(), before that answer
  // is handed on; on any thread, maybe more than once. Before the first call. Not for in-process providers: their
  // incarnation is theirs for life.
  void watch_incarnation(std::function<void()> changed) { incarnation_changed_ = std::move(changed); }
  // `returned` is called when a probe has closed the breaker; on any thread, it must not block. Before the first call.
  void watch_return(std::function<void()> returned) { returned_ = std::move(returned); }
  // Answers would_block to everything from here on. Takes no lock (a child of fork() calls it).
  void detach() noexcept { state_.store(BreakerState::detached, std::memory_order_release); }
  void attach(const std::string& incarnation);

  // As in CacheProvider; each ends by the earlier of the caller's deadline and operation_timeout_ms.
  void prefetch(uint64_t key_hash) const noexcept {
    if (in_process_) provider_->prefetch(key_hash);
  }
  GetResult get(const CacheKey& key, Deadline deadline);
  // See CacheProvider::get_by_hash; empty too while the breaker is not closed.
  Bytes get_by_hash(uint64_t key_hash) noexcept {
    if (!capabilities_.by_hash || state_.load(std::memory_order_relaxed) != BreakerState::closed) return {};
    return provider_->get_by_hash(key_hash);
  }
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline);
  Result<void> erase(const CacheKey& key, Deadline deadline);
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline);
  std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline);
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline);
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline);
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered);
  // A person asked for it: by the caller's deadline, not by the breaker's.
  Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline);

  BreakerState state() const;
  GuardCounts counts() const;
  // Only of calls that reached the provider.
  GuardLatencies latencies() const { return {gets_.snapshot(), puts_.snapshot(), erases_.snapshot()}; }

 private:
  class Place;  // a place inside the provider
  Deadline call_deadline(Deadline deadline) const;
  // Waits for a place. Errors: would_block (breaker open, or no place in time): nothing was sent.
  Result<Place> enter(Deadline deadline);
  // `call(some of them, deadline)` for as many as the provider takes at once; an answer each.
  template <typename Answer, typename Item, typename Call>
  std::vector<Answer> in_batches(std::span<const Item> items, Deadline deadline, const Call& call);
  bool probe_if_due();
  // What a call, or a batch as a whole, says about the engine.
  template <typename T>
  void note(const Result<T>& result);
  template <typename T>
  void note_batch(std::span<const Result<T>> results);
  void count_error(const Error& error);
  void count_failure();
  void open_breaker_locked() RAGFS_REQUIRES(mutex_);
  void note_closed_locked() RAGFS_REQUIRES(mutex_);
  // Unless it was detached meanwhile.
  void change_state(BreakerState to);
  void look_at_incarnation();
  // `histogram` when this call is to be timed, else nullptr.
  LatencyHistogram* timed(LatencyHistogram& histogram) const;

  const std::shared_ptr<CacheProvider> provider_;
  const ProviderCapabilities capabilities_;
  const GuardConfig config_;
  const bool in_process_;

  std::atomic<BreakerState> state_{BreakerState::closed};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> shed_{0};
  std::atomic<uint64_t> opened_{0};
  std::atomic<uint64_t> probes_{0};
  std::atomic<uint64_t> worked_{0};  // calls that did not count as failures; not those of an in-process provider
  std::array<std::atomic<uint64_t>, kErrorCodeCount> errors_{};

  LatencyHistogram gets_;
  LatencyHistogram puts_;
  LatencyHistogram erases_;

  std::function<void()> incarnation_changed_;
  std::function<void()> returned_;

  mutable Mutex mutex_;
  CondVar place_free_;
  std::string incarnation_ RAGFS_GUARDED_BY(mutex_);
  uint32_t inside_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint32_t failures_ RAGFS_GUARDED_BY(mutex_) = 0;
  int64_t window_began_ns_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t worked_at_window_ RAGFS_GUARDED_BY(mutex_) = 0;
  int64_t probe_at_ns_ RAGFS_GUARDED_BY(mutex_) = 0;
  int64_t pause_ms_ RAGFS_GUARDED_BY(mutex_) = 0;
  int64_t open_since_ns_ RAGFS_GUARDED_BY(mutex_) = 0;  // 0 = the breaker is closed
  int64_t open_ns_ RAGFS_GUARDED_BY(mutex_) = 0;        // before open_since_ns_
};

}  // namespace ragfs
