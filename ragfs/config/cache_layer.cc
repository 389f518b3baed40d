#include "ragfs/config/cache_layer.h"

#include <fmt/format.h>

#include <algorithm>

#include <initializer_list>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/settler.h"
#include "ragfs/config/process_cache.h"

namespace ragfs {
namespace {

CachePolicyConfig policy_config(const CacheConfig& cache) {
  CachePolicyConfig out;
  out.max_file_size_bytes = cache.max_file_size_bytes;
  out.max_listing_bytes = cache.max_listing_bytes;
  out.write_admission = cache.write_admission == "all" ? WriteAdmission::all : WriteAdmission::read_before;
  out.cacheable_prefixes = cache.cacheable_prefixes;
  out.bypass_prefixes = cache.bypass_prefixes;
  out.bypass_globs = cache.bypass_globs;
  out.permission_dependent_prefixes = cache.permission_dependent_prefixes;
  out.negative_only_prefixes = cache.negative_only_prefixes;
  out.no_prefetch_prefixes = cache.no_prefetch_prefixes;
  out.preferred_names = cache.preferred_names;
  out.negative_names = cache.negative.names;
  out.negative_ttl_ms = cache.negative.ttl_ms;
  return out;
}

const char* breaker_text(BreakerState state) {
  switch (state) {
    case BreakerState::closed: return "closed";
    case BreakerState::open: return "open";
    case BreakerState::probing: return "probing";
    case BreakerState::detached: return "detached";
  }
  return "closed";
}

}  // namespace

CacheLayer::~CacheLayer() {
  constexpr int64_t kTimeout_ms = 1'000;
  (void)close(Deadline::in_ms(kTimeout_ms));
}

namespace {

BackendUse use_of(const OpenedMount& mount) {
  const FileSystemTraits& traits = mount.backend->traits();
  return {.identity = mount.place.identity.empty() ? traits.identity : mount.place.identity,
          .process_local = traits.process_local,
          .cached = mount.config->cache && !traits.control,
          .changes_outside = mount.config->revalidate_ms > 0};
}

}  // namespace

Result<std::unique_ptr<CacheLayer>> CacheLayer::open(const Config& config, const std::vector<OpenedMount>& mounts,
                                                     std::vector<std::string>& warnings) {
  auto layer = std::unique_ptr<CacheLayer>(new CacheLayer(config));
  auto log = Log::open(config.log.file, log_level_of(config.log.level));
  if (!log) {
    return fail(ErrorCode::config, fmt::format("{}: {}", config.place("log.file"), log.error().text()));
  }
  layer->log_ = *std::move(log);
  std::vector<BackendUse> uses;
  for (const OpenedMount& mount : mounts) uses.push_back(use_of(mount));
  auto joined = ProcessCache::join(config, uses, layer->log_, warnings);
  if (!joined) return std::unexpected(std::move(joined.error()));
  layer->process_ = *std::move(joined);
  layer->configured_ = config.cache.enabled && config.cache.provider != "disabled" && layer->process_->with_cache();
  return layer;
}

Result<std::shared_ptr<FileSystem>> CacheLayer::wrap(const OpenedMount& mount, const Path& path, bool& cached,
                                                     std::vector<std::string>& warnings) {
  BackendUse use = use_of(mount);
  const bool wants_cache = configured_ && use.cached;
  use.cached = wants_cache;
  const auto leave = process_->use(use);
  if (!leave) return std::unexpected(leave.error());
  CachedMountConfig config;
  config.mount_path = path.text();
  config.identity = mount.place.identity;
  config.identity_prefix = mount.place.prefix;
  config.use = {.verify_earlier_lives = mount.config->warm == "verify",
                .shared = leave->shared,
                .process_local = use.process_local};
  config.revalidate_ms = mount.config->revalidate_ms;
  config.cached_walks = mount.config->cached_walks;
  config.cached_grep = mount.config->cached_grep;
  config.verify_one_in = static_cast<uint32_t>(config_.verify_sample);
  config.policy = policy_config(config_);
  config.slow_calls = slow_calls(path);
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  // How an identity is used is settled by its first mount; what that leaves open is not cached here.
  const bool known_shared = process_->domain().backend(use.identity, config.use)->use.shared;
  cached = leave->enabled && (known_shared || !leave->shared);
  if (wants_cache && !leave->refusal.empty()) {
    warnings.push_back(fmt::format("{}: not cached, and not to be written: {}", path.text(), leave->refusal));
  } else if (leave->shared) {
    warnings.push_back(fmt::format("{}: other processes write it too: {}", path.text(),
                                   cached ? "every file is compared with the backend at each read" : "not cached"));
  }
  config.enabled = cached;
  auto wrapped = std::make_shared<CachedFileSystem>(mount.backend, ProcessCache::share_domain(process_), config);
  const bool recalled = cached && process_->recall_hot_keys(*process_->domain().backend(use.identity, config.use));
  if (recalled && config_.warm_on_start) wrapped->warm_in_background();
  if (cached && !on_) wrapped->set_enabled(false);
  const MutexLock lock(mutex_);
  mounts_.push_back({path, wrapped, cached});
  return std::static_pointer_cast<FileSystem>(std::move(wrapped));
}

SlowCalls CacheLayer::slow_calls(const Path& mount) const {
  SlowCalls slow;
  slow.threshold_ns = log_config_.slow_operation_ms * 1'000'000;
  slow.told = [log = log_, mount](std::string_view operation, PathView path, int64_t took_ns, const Error* error) {
    const Result<Path> whole = Path::concat(mount, path);
    log->write_some(LogLevel::warn, fmt::format("action=slow_operation operation={} path={} took_ms={} result={}",
                                                operation, whole ? whole->view().text() : path.text(),
                                                took_ns / 1'000'000, error ? kind_name(error->code) : "ok"));
  };
  return slow;
}

void CacheLayer::unwrap(const FileSystem* wrapped) {
  std::shared_ptr<CachedFileSystem> last;  // let go after the lock
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(mounts_, [&](const Mount& mount) { return mount.cached.get() == wrapped; });
  if (found == mounts_.end()) return;
  last = std::move(found->cached);
  mounts_.erase(found);
  unwrapped_counts_.resize(kCacheCounterCount);
  for (size_t i = 0; i < kCacheCounterCount; ++i) unwrapped_counts_[i] += last->count(static_cast<CacheCounter>(i));
}

std::vector<CacheLayer::Mount> CacheLayer::mounts() const {
  const MutexLock lock(mutex_);
  return mounts_;
}

namespace {

// Merged reads, and the calls to the provider.
void report_provider_calls(CoherenceDomain& domain, CacheReport& report) {
  const auto count = [&](const char* name, uint64_t value) { report.counters.emplace_back(name, value); };
  const auto both = [&](std::atomic<uint64_t> InflightCounts::* counter) {
    return (domain.file_flights().counts().*counter).load() + (domain.listing_flights().counts().*counter).load();
  };
  const uint64_t followers = both(&InflightCounts::followers);
  const uint64_t timeouts = both(&InflightCounts::follower_timeouts);
  count("inflight_leader", both(&InflightCounts::leaders));
  count("inflight_follower", followers);
  count("inflight_saved", followers - std::min(followers, timeouts));
  count("inflight_timeout", timeouts);
  count("inflight_replaced", both(&InflightCounts::leaders_replaced));
  count("inflight_aborted", both(&InflightCounts::leaders_aborted));
  count("inflight_overflow", both(&InflightCounts::overflows));
  const GuardCounts calls = domain.provider().counts();
  uint64_t errors = 0;
  for (size_t i = 0; i < kErrorCodeCount; ++i) {
    if (calls.errors[i] == 0) continue;
    errors += calls.errors[i];
    report.provider_errors.emplace_back(kind_name(static_cast<ErrorCode>(i)), calls.errors[i]);
  }
  count("error", errors);
  count("provider_bypassed", calls.shed);
  count("breaker_opened", calls.opened);
  count("breaker_probe", calls.probes);
  count("bypass_ms", calls.open_ns / 1'000'000);
  report.inflight_active = domain.file_flights().active() + domain.listing_flights().active();
  report.retry_pending = domain.settler().pending();
  const GuardLatencies latencies = domain.provider().latencies();
  report.latencies.push_back({"get", "", latencies.gets});
  report.latencies.push_back({"set", "", latencies.puts});
  report.latencies.push_back({"delete", "", latencies.erases});
  LatencySnapshot waits = domain.file_flights().counts().waits.snapshot();
  waits += domain.listing_flights().counts().waits.snapshot();
  report.latencies.push_back({"inflight_wait", "", waits});
}

}  // namespace

CacheReport CacheLayer::report() const {
  CacheReport report;
  report.configured = configured_;
  if (!configured_) return report;
  CoherenceDomain& domain = process_->domain();
  report.on = on_;
  report.provider = process_->provider().name();
  report.outlives_process = process_->provider().capabilities().outlives_process;
  report.state = breaker_text(domain.provider().state());
  report.provider_metrics = process_->provider().metrics();
  if (const NearTier* near = domain.near()) {
    for (ProviderMetric& metric : near->metrics()) report.provider_metrics.push_back(std::move(metric));
  }
  const LifeReport life = process_->life().report();
  report.life = process_->life().off() ? "off" : stage_name(life.stage);
  report.life_why = life.why;
  report.warm = life.warm;
  report_counters(report);
  report_provider_calls(domain, report);
  const auto sum = [&](std::initializer_list<CacheCounter> counters) {
    uint64_t total = 0;
    for (const CacheCounter counter : counters) total += report.counters[static_cast<size_t>(counter)].second;
    return total;
  };
  report.hits =
      sum({CacheCounter::file_hit, CacheCounter::directory_hit, CacheCounter::stat_hit, CacheCounter::negative_hit});
  report.misses = sum({CacheCounter::file_miss, CacheCounter::directory_miss, CacheCounter::stat_miss});
  return report;
}

void CacheLayer::report_counters(CacheReport& report) const {
  const CoherenceDomain& domain = process_->domain();
  const MutexLock lock(mutex_);  // a mount that goes away is counted once
  for (const Mount& mount : mounts_) {
    report.mounts.push_back({std::string(mount.path.view().text()), {}});
    report.latencies.push_back({"backend_read", report.mounts.back().path, mount.cached->backend_reads()});
    report.latencies.push_back({"backend_list", report.mounts.back().path, mount.cached->backend_listings()});
  }
  for (size_t i = 0; i < kCacheCounterCount; ++i) {
    const auto counter = static_cast<CacheCounter>(i);
    uint64_t value = domain.counters().read(counter);
    if (!unwrapped_counts_.empty()) value += unwrapped_counts_[i];
    for (size_t m = 0; m < mounts_.size(); ++m) {
      const uint64_t of_mount = mounts_[m].cached->count(counter);
      value += of_mount;
      if (counter <= kLastOfMounts) report.mounts[m].counters.emplace_back(kCacheCounterNames[i], of_mount);
    }
    report.counters.emplace_back(kCacheCounterNames[i], value);
  }
}

void CacheLayer::set_on(bool on) {
  for (const Mount& mount : mounts()) {
    if (mount.wants_cache) mount.cached->set_enabled(on);
  }
  on_ = on;
}

void CacheLayer::flush() { process_->domain().new_epoch(); }

Result<void> CacheLayer::new_epoch(Deadline deadline) { return process_->life().new_epoch(deadline); }

Result<void> CacheLayer::rejoin(Deadline deadline) { return process_->life().rejoin(deadline); }

Result<void> CacheLayer::for_mounts(PathView path, const std::function<Result<void>(const Mount&, PathView)>& act) {
  const std::vector<Mount> mounts = this->mounts();
  const Mount* holder = nullptr;
  for (const Mount& mount : mounts) {
    if (!path.is_within(mount.path)) continue;
    if (holder == nullptr || mount.path.view().depth() > holder->path.view().depth()) holder = &mount;
  }
  if (holder != nullptr) {
    if (auto done = act(*holder, path.relative_to(holder->path)); !done) return done;
  }
  for (const Mount& mount : mounts) {
    if (&mount == holder || !mount.path.view().is_within(path)) continue;
    if (auto done = act(mount, PathView()); !done) return done;
  }
  return {};
}

Result<void> CacheLayer::invalidate(PathView path) {
  return for_mounts(path, [](const Mount& mount, PathView at) { return mount.cached->invalidate(Context(), at); });
}

Result<VerifyReport> CacheLayer::verify(const Context& ctx, PathView path) {
  VerifyReport report;
  auto done = for_mounts(path, [&](const Mount& mount, PathView at) {
    const size_t known = report.wrong_paths.size();
    auto verified = mount.cached->verify(ctx, at, report);
    for (size_t i = known; i < report.wrong_paths.size() && !mount.path.view().is_root(); ++i) {
      const std::string below = report.wrong_paths[i] == "/" ? "" : report.wrong_paths[i];
      report.wrong_paths[i] = std::string(mount.path.view().text()) + below;
    }
    return verified;
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return report;
}

std::vector<HotKey> CacheLayer::hot_keys(PathView path, size_t most) {
  std::vector<HotKey> all;
  (void)for_mounts(path, [&](const Mount& mount, PathView at) -> Result<void> {
    for (HotKey& key : mount.cached->hot_keys(at, most)) {
      const Result<Path> whole = Path::concat(mount.path, PathView::from_normal(key.path));
      if (!whole) continue;
      key.path = whole->text();
      all.push_back(std::move(key));
    }
    return {};
  });
  std::ranges::stable_sort(all, std::ranges::greater(), &HotKey::reads);
  if (all.size() > most) all.resize(most);
  return all;
}

Result<WarmReport> CacheLayer::warm(const Context& ctx, PathView path) {
  WarmReport report;
  auto done = for_mounts(path, [&](const Mount& mount, PathView at) { return mount.cached->warm(ctx, at, report); });
  if (!done) return std::unexpected(std::move(done.error()));
  return report;
}

Result<uint64_t> CacheLayer::purge(std::string_view account, Deadline deadline) {
  return process_->domain().purge_account(account, deadline);
}

Result<void> CacheLayer::check(Deadline deadline) { return process_->provider().health(deadline); }

std::vector<std::string> CacheLayer::engine_warnings(Deadline deadline) {
  return process_->provider().warnings(deadline);
}

Result<void> CacheLayer::close(Deadline deadline) {
  if (process_ == nullptr || left_.exchange(true)) return {};
  // First of all: what nobody waits for does not begin any more. What of it still runs at the end of its part of the
  // time is a fill like any other to those that come next.
  constexpr int64_t kPrefetchPart = 4;  // a fourth
  const Deadline prefetch = deadline.is_never() ? deadline : Deadline::in_ns(deadline.remaining_ns() / kPrefetchPart);
  for (const Mount& mount : mounts()) (void)mount.cached->stop_prefetch(prefetch);
  RAGFS_PAUSE_POINT("close.prefetch_stopped");
  return process_->leave(deadline);
}

}  // namespace ragfs
