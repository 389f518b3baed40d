#include "ragfs/config/cache_layer.h"

#include <fmt/format.h>

#include <algorithm>

#include <initializer_list>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/settler.h"
#include "ragfs/config/factories.h"
#include "ragfs/providers/disabled/disabled_provider.h"

namespace ragfs {
namespace {

constexpr int64_t kStartTimeout_ms = 2'000;

CoherenceConfig coherence_config(const CacheConfig& cache) {
  CoherenceConfig out;
  out.name_space = cache.name_space;
  out.failure_mode = cache.failure_mode == "strict" ? FailureMode::strict : FailureMode::bypass;
  out.default_ttl_ms = cache.default_ttl_seconds * 1000;
  out.verify_dram = cache.verify_dram == "off"      ? VerifyDram::off
                    : cache.verify_dram == "always" ? VerifyDram::always
                                                    : VerifyDram::sample;
  out.guard.operation_timeout_ms = cache.effective_operation_timeout_ms();
  out.guard.concurrency = static_cast<uint32_t>(cache.sdk_concurrency);
  return out;
}

CachePolicyConfig policy_config(const CacheConfig& cache) {
  CachePolicyConfig out;
  out.max_file_size_bytes = cache.max_file_size_bytes;
  out.max_listing_bytes = cache.max_listing_bytes;
  out.bypass_prefixes = cache.bypass_prefixes;
  out.bypass_globs = cache.bypass_globs;
  out.permission_dependent_prefixes = cache.permission_dependent_prefixes;
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

CacheLayer::~CacheLayer() = default;

Result<std::unique_ptr<CacheLayer>> CacheLayer::open(const Config& config, std::vector<std::string>& warnings) {
  const std::string place = config.place("storage.agfs.cache.provider");
  auto layer = std::unique_ptr<CacheLayer>(new CacheLayer(config.cache));
  auto provider = open_provider(config.cache);
  if (!provider) {
    const Error& error = provider.error();
    // What is written wrongly is wrong in every mode; only an engine that does not answer may be done without.
    const bool may_bypass = error.code != ErrorCode::config && config.cache.failure_mode == "bypass";
    if (!may_bypass) return fail(error.code, fmt::format("{}: {}", place, error.message), error.sys_errno);
    warnings.push_back(fmt::format("{}: {}; going on without the cache", place, error.text()));
    provider = std::make_shared<DisabledProvider>(fmt::format("{} at start: {}", config.cache.provider, error.text()));
  }
  layer->provider_ = std::move(*provider);
  // An engine that is down joins by itself when it answers; who wants it at start says strict.
  if (auto up = layer->provider_->health(Deadline::in_ms(kStartTimeout_ms)); !up) {
    if (config.cache.failure_mode == "strict") {
      return fail(up.error().code, fmt::format("{}: {}", place, up.error().message), up.error().sys_errno);
    }
    warnings.push_back(fmt::format("{}: {}; going on without the cache until it answers", place, up.error().text()));
  }
  CoherenceConfig coherence = coherence_config(config.cache);
  if (auto valid = coherence.validate(); !valid) return std::unexpected(valid.error());
  layer->domain_ = std::make_shared<CoherenceDomain>(std::move(coherence), layer->provider_);
  return layer;
}

Result<std::shared_ptr<FileSystem>> CacheLayer::wrap(const MountConfig& mount, const Path& path,
                                                     std::shared_ptr<FileSystem> backend, bool wants_cache,
                                                     const IdentityPlace& place) {
  CachedMountConfig config;
  config.mount_path = path.text();
  config.identity = place.identity;
  config.identity_prefix = place.prefix;
  config.enabled = wants_cache;
  config.revalidate_ms = mount.revalidate_ms;
  config.policy = policy_config(config_);
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  auto cached = std::make_shared<CachedFileSystem>(std::move(backend), domain_, config);
  if (wants_cache && !on_) cached->set_enabled(false);
  const MutexLock lock(mutex_);
  mounts_.push_back({path, cached, wants_cache});
  return std::static_pointer_cast<FileSystem>(std::move(cached));
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

CacheReport CacheLayer::report() const {
  CacheReport report;
  report.configured = true;
  report.on = on_;
  report.provider = provider_->name();
  report.state = breaker_text(domain_->provider().state());
  report.provider_metrics = provider_->metrics();
  const MutexLock lock(mutex_);  // a mount that goes away is counted once
  for (size_t i = 0; i < kCacheCounterCount; ++i) {
    const auto counter = static_cast<CacheCounter>(i);
    uint64_t value = domain_->counters().read(counter);
    if (!unwrapped_counts_.empty()) value += unwrapped_counts_[i];
    for (const Mount& mount : mounts_) value += mount.cached->count(counter);
    report.counters.emplace_back(kCacheCounterNames[i], value);
  }
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

void CacheLayer::set_on(bool on) {
  for (const Mount& mount : mounts()) {
    if (mount.wants_cache) mount.cached->set_enabled(on);
  }
  on_ = on;
}

void CacheLayer::flush() { domain_->new_epoch(); }

Result<void> CacheLayer::invalidate(PathView path) {
  const std::vector<Mount> mounts = this->mounts();
  const Mount* holder = nullptr;
  for (const Mount& mount : mounts) {
    if (!path.is_within(mount.path)) continue;
    if (holder == nullptr || mount.path.view().depth() > holder->path.view().depth()) holder = &mount;
  }
  if (holder != nullptr) {
    if (auto done = holder->cached->invalidate(Context(), path.relative_to(holder->path)); !done) return done;
  }
  for (const Mount& mount : mounts) {
    if (&mount == holder || !mount.path.view().is_within(path)) continue;
    if (auto done = mount.cached->invalidate(Context(), PathView()); !done) return done;
  }
  return {};
}

Result<void> CacheLayer::check(Deadline deadline) { return provider_->health(deadline); }

std::vector<std::string> CacheLayer::engine_warnings(Deadline deadline) { return provider_->warnings(deadline); }

Result<void> CacheLayer::close(Deadline deadline) {
  // Erases that wait for a retry get their chance; what is left is refused by the next life's epoch.
  domain_->settler().drain(deadline);
  return provider_->close(deadline);
}

}  // namespace ragfs
