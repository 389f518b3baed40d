#include "ragfs/config/process_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "ragfs/base/hash.h"
#include "ragfs/cache/lives/state_dir.h"
#include "ragfs/cache/rules.h"
#include "ragfs/config/factories.h"
#include "ragfs/config/field_text.h"
#include "ragfs/config/fields.h"
#include "ragfs/providers/disabled/disabled_provider.h"

namespace ragfs {
namespace {

constexpr int64_t kStartTimeout_ms = 2'000;
constexpr int64_t kRegistryTimeout_ms = 60'000;  // for another client of this process to open or close

// The namespaces that are open in this process.
struct Registry {
  enum class State : uint8_t { opening, open, closing };
  struct Slot {
    State state = State::opening;
    std::weak_ptr<ProcessCache> cache;
    size_t clients = 0;
  };
  const pid_t process = ::getpid();
  Mutex mutex;
  CondVar changed;
  std::map<std::string, Slot> slots RAGFS_GUARDED_BY(mutex);
};

// The process's one. A child of fork() has nothing open, and the parent's mutex may stand locked there: it takes a new
// one, and what the parent had is left where it is.
Registry& registry() {
  static std::atomic<Registry*> current{nullptr};
  Registry* seen = current.load();
  while (seen == nullptr || seen->process != ::getpid()) {
    auto fresh = std::make_unique<Registry>();
    if (current.compare_exchange_strong(seen, fresh.get())) return *fresh.release();
  }
  return *seen;
}

bool wants_cache(const CacheConfig& cache) { return cache.enabled && cache.provider != "disabled"; }

CoherenceConfig coherence_config(const CacheConfig& cache) {
  CoherenceConfig out;
  out.name_space = cache.name_space;
  // Without a cache there is nothing that a mutation could fail to tell.
  const bool strict = cache.failure_mode == "strict" && wants_cache(cache);
  out.failure_mode = strict ? FailureMode::strict : FailureMode::bypass;
  out.default_ttl_ms = cache.default_ttl_seconds * 1000;
  out.verify_inherited = cache.inherited == "verify";
  out.verify_dram = cache.verify_dram == "off"      ? VerifyDram::off
                    : cache.verify_dram == "always" ? VerifyDram::always
                                                    : VerifyDram::sample;
  out.prefetch.enabled = cache.prefetch.enabled && wants_cache(cache);
  out.prefetch.concurrency = static_cast<uint32_t>(cache.prefetch.concurrency);
  out.prefetch.max_queued = static_cast<size_t>(cache.prefetch.queue_limit);
  out.prefetch.max_objects = static_cast<size_t>(cache.prefetch.max_objects);
  out.prefetch.cooldown_ms = cache.prefetch.cooldown_ms;
  out.prefetch.busy_reads_per_second = static_cast<uint64_t>(cache.prefetch.busy_reads_per_second);
  out.prefetch.bytes_per_second = cache.prefetch.bytes_per_second;
  out.hot_keys = cache.hot_keys;
  out.warm_on_start = cache.warm_on_start && cache.hot_keys && wants_cache(cache);
  out.guard.operation_timeout_ms = cache.effective_operation_timeout_ms();
  out.guard.concurrency = static_cast<uint32_t>(cache.sdk_concurrency);
  return out;
}

// What one client cannot have otherwise than another: the provider, and how it and the domain work.
std::vector<std::pair<std::string, std::string>> shared_settings(const Config& config) {
  const std::string prefix = "storage.agfs.cache.";
  std::vector<std::pair<std::string, std::string>> out;
  visit_fields(config_section(), &config, "", [&](const std::string& path, const Field& field, const void* owner) {
    if (!path.starts_with(prefix)) return;
    const std::string key = path.substr(prefix.size());
    const bool domain = key == "provider" || key == "failure_mode" || key == "default_ttl_seconds" ||
                        key == "near_cache_bytes" || key == "state_dir" || key == "shared" || key == "inherited" ||
                        key == "verify_dram" || key == "hot_keys" || key == "warm_on_start";
    if (domain || key.starts_with("prefetch.") || key.starts_with(config.cache.provider + ".")) {
      out.emplace_back(key, field_value_text(field, owner));
    }
  });
  return out;
}

}  // namespace

// What a test of the rule "one domain for a process" takes apart: a client that does not look for the others.
Result<std::shared_ptr<ProcessCache>> ProcessCache::open_alone(const Config& config,
                                                               const std::vector<BackendUse>& backends,
                                                               std::shared_ptr<Log> log,
                                                               std::vector<std::string>& warnings) {
  auto cache = std::make_shared<ProcessCache>(Private());
  cache->log_ = std::move(log);
  if (auto opened = cache->open(config, backends, warnings); !opened) return std::unexpected(opened.error());
  return cache;
}

Result<std::shared_ptr<ProcessCache>> ProcessCache::join(const Config& config, const std::vector<BackendUse>& backends,
                                                         std::shared_ptr<Log> log, std::vector<std::string>& warnings) {
  if (!rule_enabled(Rule::kOneDomain)) return open_alone(config, backends, std::move(log), warnings);
  Registry& all = registry();
  const std::string& name = config.cache.name_space;
  const Deadline until = Deadline::in_ms(kRegistryTimeout_ms);
  std::shared_ptr<ProcessCache> cache;
  {
    MutexLock lock(all.mutex);
    while (true) {
      const auto found = all.slots.find(name);
      if (found == all.slots.end()) break;
      if (found->second.state == Registry::State::open) {
        cache = found->second.cache.lock();
        if (cache == nullptr) break;  // its last client went without closing it
        if (auto joinable = cache->check_joinable(config, warnings); !joinable)
          return std::unexpected(joinable.error());
        ++found->second.clients;
        return cache;
      }
      if (!all.changed.wait_until(all.mutex, until)) {
        return fail(ErrorCode::unavailable,
                    fmt::format("namespace {} is being opened or closed by this process for too long", name));
      }
    }
    all.slots[name] = {Registry::State::opening, {}, 1};
  }
  cache = std::make_shared<ProcessCache>(Private());
  cache->log_ = std::move(log);
  const Result<void> opened = cache->open(config, backends, warnings);
  MutexLock lock(all.mutex);
  all.changed.notify_all();
  if (!opened) {
    all.slots.erase(name);
    return std::unexpected(opened.error());
  }
  all.slots[name] = {Registry::State::open, cache, 1};
  return cache;
}

Result<void> ProcessCache::check_joinable(const Config& config, std::vector<std::string>& warnings) const {
  if (!wants_cache(config.cache)) return {};
  const std::string where = config.place("storage.agfs.cache.namespace");
  if (!with_cache_) {
    warnings.push_back(fmt::format("{}: this process uses namespace {} without a cache already; going on without one",
                                   where, name_space_));
    return {};
  }
  const auto wanted = shared_settings(config);
  for (const auto& [key, value] : wanted) {
    for (const auto& [known, present] : settings_) {
      if (key != known || value == present) continue;
      return fail(ErrorCode::config,
                  fmt::format("{}: this process uses namespace {} with {}: {}; {} is not possible beside it", where,
                              name_space_, key, present.empty() ? "\"\"" : present, value.empty() ? "\"\"" : value));
    }
  }
  return {};
}

Result<bool> ProcessCache::open_provider_of(const Config& config, std::vector<std::string>& warnings) {
  if (!with_cache_) {
    provider_ = std::make_shared<DisabledProvider>();
    return true;
  }
  const std::string place = config.place("storage.agfs.cache.provider");
  auto provider = ragfs::open_provider(config.cache, log_);
  if (!provider) {
    const Error& error = provider.error();
    // What is written wrongly is wrong in every mode; only an engine that does not answer may be done without.
    const bool may_bypass = error.code != ErrorCode::config && config.cache.failure_mode == "bypass";
    if (!may_bypass) return fail(error.code, fmt::format("{}: {}", place, error.message), error.sys_errno);
    warnings.push_back(fmt::format("{}: {}; going on without the cache", place, error.text()));
    provider_ = std::make_shared<DisabledProvider>(fmt::format("{} at start: {}", config.cache.provider, error.text()));
    off_ = true;
    return true;
  }
  provider_ = std::move(*provider);
  // An engine that is down joins by itself when it answers; who wants it at start says strict.
  const Result<void> up = provider_->health(Deadline::in_ms(kStartTimeout_ms));
  if (up) return true;
  if (config.cache.failure_mode == "strict") {
    return fail(up.error().code, fmt::format("{}: {}", place, up.error().message), up.error().sys_errno);
  }
  warnings.push_back(fmt::format("{}: {}; going on without the cache until it answers", place, up.error().text()));
  return false;
}

Result<std::string> ProcessCache::state_directory(const Config& config, const std::vector<BackendUse>& backends,
                                                  std::vector<std::string>& warnings) const {
  const bool outlives = with_cache_ && !off_ && provider_->capabilities().outlives_process;
  const bool reachable = std::ranges::any_of(backends, [](const BackendUse& use) { return !use.process_local; });
  const std::string& given = config.cache.state_dir;
  if (given.empty() && !outlives && !reachable) return std::string();
  const StateDir directory(given.empty() ? StateDir::default_path(encode_key_part(name_space_)) : given);
  std::vector<std::string> served;
  for (const MountConfig& mount : config.mounts) {
    if (mount.type == "localfs") served.push_back(mount.local_dir);
  }
  Result<void> usable = directory.check_outside(served);
  if (usable) usable = directory.make();
  if (usable) return directory.path();
  const std::string place = config.place("storage.agfs.cache.state_dir");
  if (!given.empty()) return fail(ErrorCode::config, fmt::format("{}: {}", place, usable.error().message));
  // Without it nothing gets wrong: every start is cold. That other processes are not kept away is worth a word where
  // the operator has not said that there are some.
  const bool alone = std::ranges::any_of(
      backends, [](const BackendUse& use) { return !use.process_local && use.cached && !use.changes_outside; });
  if (outlives || alone) {
    warnings.push_back(
        fmt::format("{}: {}; nothing is remembered for the next start, and other processes that write "
                    "the same files are not noticed",
                    place, usable.error().message));
  }
  return std::string();
}

Result<void> ProcessCache::open(const Config& config, const std::vector<BackendUse>& backends,
                                std::vector<std::string>& warnings) {
  name_space_ = config.cache.name_space;
  with_cache_ = wants_cache(config.cache);
  settings_ = shared_settings(config);
  CoherenceConfig coherence = coherence_config(config.cache);
  if (auto valid = coherence.validate(); !valid) return valid;
  const Result<bool> answers = open_provider_of(config, warnings);
  if (!answers) return std::unexpected(answers.error());
  Result<std::string> directory = state_directory(config, backends, warnings);
  if (!directory) return std::unexpected(std::move(directory.error()));
  state_dir_ = *directory;
  if (with_cache_ && coherence.hot_keys) {
    const MutexLock lock(recalled_mutex_);
    recalled_ = HotKeysFile(StateDir(state_dir_)).read();
  }
  LifeConfig life;
  life.name_space = name_space_;
  life.state_dir = *std::move(directory);
  life.off = !with_cache_ || off_;
  life.outlives = provider_->capabilities().outlives_process;
  life.shared = config.cache.shared;
  if (auto valid = life.validate(); !valid) return valid;
  life_ = std::make_unique<Life>(std::move(life), provider_);
  // All locks first: a process that may not write one of its backends does not claim the pointer.
  for (const BackendUse& backend : backends) {
    if (const Result<Leave> leave = use(backend); !leave) return std::unexpected(leave.error());
  }
  std::shared_ptr<CacheProvider> near;
  if (!life_->off()) {
    auto made = open_near_memory(config.cache, *provider_);
    if (!made) return std::unexpected(made.error());
    near = std::move(*made);
  }
  DomainStart start = life_->start(*answers);
  start.near = std::move(near);
  domain_ = std::make_unique<CoherenceDomain>(std::move(coherence), provider_, Clock::system(), start);
  life_->attach(*domain_);
  return {};
}

ProcessCache::~ProcessCache() {
  // A child of fork() has none of the threads that would have to be ended, and what they wait on cannot be destroyed:
  // all of it is left as it is.
  if (domain_ && domain_->in_child()) {
    (void)domain_.release();
    (void)life_.release();
    return;
  }
  if (life_) life_->stop_thread();
  domain_.reset();
}

Result<ProcessCache::Leave> ProcessCache::use(const BackendUse& backend) {
  Leave leave;
  if (!backend.cached) return leave;
  if (life_->off()) {
    leave.refusal = refusal_;
    return leave;
  }
  leave.enabled = true;
  if (backend.process_local || backend.identity.empty()) return leave;
  // Where others are known to write, the lock only keeps those away who want to be alone.
  const LockKind wish = backend.changes_outside ? LockKind::shared : LockKind::exclusive;
  const Result<LockKind> kind = life_->hold(hash64(backend.identity), wish);
  if (!kind && kind.error().code != ErrorCode::read_only) return std::unexpected(kind.error());
  leave.enabled = kind.has_value();
  if (!kind) leave.refusal = kind.error().message;
  if (!kind && domain_ == nullptr) refusal_ = leave.refusal;
  leave.shared = kind && *kind == LockKind::shared && !backend.changes_outside;
  return leave;
}

Result<void> ProcessCache::leave(Deadline deadline) {
  Registry& all = registry();
  {
    MutexLock lock(all.mutex);
    const auto found = all.slots.find(name_space_);
    const bool mine = found != all.slots.end() && found->second.cache.lock().get() == this;
    if (mine && --found->second.clients > 0) return {};
    if (mine) found->second.state = Registry::State::closing;
    if (!mine && domain_->in_child()) return {};  // the parent's
  }
  Result<void> closed = close(deadline);
  MutexLock lock(all.mutex);
  const auto found = all.slots.find(name_space_);
  if (found != all.slots.end() && found->second.cache.lock().get() == this) all.slots.erase(found);
  all.changed.notify_all();
  return closed;
}

// The old counts weigh half, so that what this run reads comes to the top; all together less than what makes them fade.
bool ProcessCache::recall_hot_keys(BackendDomain& backend) {
  HotKeysOfBackend known;
  {
    const MutexLock lock(recalled_mutex_);
    const auto found = std::ranges::find(recalled_, backend.identity_hash, &HotKeysOfBackend::identity_hash);
    if (found == recalled_.end()) return false;
    known = std::move(*found);
    recalled_.erase(found);
  }
  constexpr uint64_t kMostReads = 1 << 18;
  uint64_t all = 0;
  for (const HotKey& key : known.keys) all += key.reads;
  const uint64_t divisor = 2 + all / kMostReads;
  for (const HotKey& key : known.keys) {
    backend.hot.note(PathView::from_normal(key.path), key.kind, std::max<uint64_t>(key.reads / divisor, 1));
  }
  return !known.keys.empty();
}

// Best effort: without it the next run starts colder.
void ProcessCache::keep_hot_keys() const {
  if (state_dir_.empty() || !domain_->config().hot_keys) return;
  std::vector<HotKeysOfBackend> all;
  for (const auto& backend : domain_->backends()) {
    std::vector<HotKey> keys = backend->hot.top(PathView(), HotKeysFile::kMostKeys);
    if (!keys.empty()) all.push_back({backend->identity_hash, std::move(keys)});
  }
  if (!all.empty()) (void)HotKeysFile(StateDir(state_dir_)).write(all);
}

Result<void> ProcessCache::close(Deadline deadline) {
  if (with_cache_ && !domain_->in_child()) keep_hot_keys();
  // The provider gets a part of the time, whatever the erases that wait have taken.
  constexpr int64_t kDrainPart = 4;  // of five
  const Deadline drain =
      deadline.is_never() ? deadline : Deadline::in_ns(deadline.remaining_ns() / (kDrainPart + 1) * kDrainPart);
  const Result<bool> marked = life_->close(drain);
  const Result<void> closed = provider_->close(deadline);
  if (!marked) return std::unexpected(marked.error());
  return closed;
}

}  // namespace ragfs
