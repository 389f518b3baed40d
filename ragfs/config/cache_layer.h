// CacheLayer: the cache of an Instance: its provider, its coherence domain and the wrappers around cached mounts.
//
// For: Instance, which asks it to wrap each backend and hands the operator's commands on. Not for: the protocol of the
// cache (cache/). Thread-safety: all methods may be called from any thread; close() last.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/latency_histogram.h"
#include "ragfs/base/log.h"
#include "ragfs/base/path.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/hot_keys.h"
#include "ragfs/cache/provider.h"
#include "ragfs/cache/verify_report.h"
#include "ragfs/cache/warm_report.h"
#include "ragfs/config/config.h"
#include "ragfs/fs/exception_barrier.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

class CachedFileSystem;
class ProcessCache;

// Figures of one mount: those that mounts count (cache_counters.h).
struct CacheMountReport {
  std::string path;
  std::vector<std::pair<std::string, uint64_t>> counters;
};

// How long something took, for /metrics and `cache stats`.
struct CacheLatency {
  std::string name;   // without prefix: "get", "set", "delete", "inflight_wait", "backend_read", "backend_list"
  std::string mount;  // "" = of all mounts
  LatencySnapshot figures;
};

struct CacheReport {
  bool configured = false;  // there is a cache at all
  bool on = false;          // and it is in use
  std::string provider;
  bool outlives_process = false;                           // what is cached may be there in the next run
  std::string state;                                       // "closed", "open", "probing": of the circuit breaker
  std::vector<std::pair<std::string, uint64_t>> counters;  // of all mounts together, and of those that have gone
  std::vector<CacheMountReport> mounts;
  std::vector<std::pair<std::string, uint64_t>> provider_errors;  // by kind
  std::vector<CacheLatency> latencies;
  uint64_t inflight_active = 0;  // backend reads that others may join
  uint64_t retry_pending = 0;    // erases that wait to be made again
  std::vector<ProviderMetric> provider_metrics;
  uint64_t hits = 0;
  uint64_t misses = 0;
  std::string life;      // "joined", "apart", "left", "closed"; "off" where the cache may not be used
  std::string life_why;  // why it is not joined
  bool warm = false;     // it goes on with what the run before had cached
};

// Where a backend's root lies in the identity that its objects are named by.
struct IdentityPlace {
  std::string identity;  // "" = the backend's own, at its root
  std::string prefix = "/";
};

// A backend that a mount is about to show.
struct OpenedMount {
  const MountConfig* config;
  std::shared_ptr<FileSystem> backend;
  IdentityPlace place;
};

class CacheLayer {
 public:
  // Without a cache in `config` too: mutations are told to whom it may concern. `mounts`: all that are there at start.
  // Errors: config (a provider that is unknown or not in this build); those of the provider, in strict mode only: in
  // bypass mode a provider that cannot be started is replaced by none, and `warnings` says so.
  static Result<std::unique_ptr<CacheLayer>> open(const Config& config, const std::vector<OpenedMount>& mounts,
                                                  std::vector<std::string>& warnings);
  ~CacheLayer();
  CacheLayer(const CacheLayer&) = delete;
  CacheLayer& operator=(const CacheLayer&) = delete;

  // There is a cache, for those mounts that want it.
  bool configured() const { return configured_; }
  // The backend with the cache in front of it. A mount that wants no cache is wrapped all the same (its mutations count
  // for others that show the same data). `cached` says whether the cache may be used; if not, `warnings` why.
  // Errors: config; those of the state directory.
  Result<std::shared_ptr<FileSystem>> wrap(const OpenedMount& mount, const Path& path, bool& cached,
                                           std::vector<std::string>& warnings);

  // Forgets the wrapper of a mount that was taken away; its counts stay in the report.
  void unwrap(const FileSystem* wrapped);

  CacheReport report() const;
  // Off: reads ask the backends and nothing is stored; mutations are recorded all the same.
  void set_on(bool on);
  void flush();
  // As flush(), for the next runs too; in place by the deadline. Errors: unavailable, timeout.
  Result<void> new_epoch(Deadline deadline);
  // Back into the cache after another writer was seen. Errors: unavailable, timeout.
  Result<void> rejoin(Deadline deadline);
  Result<void> invalidate(PathView path);
  // What is wrong is refused from then on, and its path in the tree is in the report. Errors: timeout, not_found.
  Result<VerifyReport> verify(const Context& ctx, PathView path);
  // What was read most at and below `path`, hottest first; paths in the tree.
  std::vector<HotKey> hot_keys(PathView path, size_t most);
  // Reads of these what is not cached. Errors: timeout.
  Result<WarmReport> warm(const Context& ctx, PathView path);
  // CoherenceDomain::purge_account().
  Result<uint64_t> purge(std::string_view account, Deadline deadline);
  Result<void> check(Deadline deadline);
  // CacheProvider::warnings().
  std::vector<std::string> engine_warnings(Deadline deadline);
  Result<void> close(Deadline deadline);

 private:
  struct Mount {
    Path path;
    std::shared_ptr<CachedFileSystem> cached;
    bool wants_cache = false;
  };
  explicit CacheLayer(const Config& config) : config_(config.cache), log_config_(config.log) {}
  SlowCalls slow_calls(const Path& mount) const;

  const CacheConfig config_;
  const LogConfig log_config_;
  std::shared_ptr<Log> log_;
  std::shared_ptr<ProcessCache> process_;
  bool configured_ = false;
  std::atomic<bool> left_{false};
  std::vector<Mount> mounts() const;
  void report_counters(CacheReport& report) const;
  // Calls `act` with each mount that shows something at or below `path`, and where that begins in it.
  Result<void> for_mounts(PathView path, const std::function<Result<void>(const Mount&, PathView)>& act);
  mutable Mutex mutex_;
  std::vector<Mount> mounts_ RAGFS_GUARDED_BY(mutex_);
  std::vector<uint64_t> unwrapped_counts_ RAGFS_GUARDED_BY(mutex_);  // by CacheCounter; empty before the first
  std::atomic<bool> on_{true};
};

}  // namespace ragfs
