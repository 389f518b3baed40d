// ProcessCache: what all clients of one namespace share in a process: the provider, the life and the coherence domain.
//
// The first client opens it with its configuration, later ones join it (a registry finds it by namespace), so two
// clients of a process never disagree; the last one to leave closes it in order. With the cache turned off it is there
// all the same: witness and locks belong to the namespace, not to the cache (docs/design.md 3.6, 3.9).
// Not for: mounts (cache_layer.h); the protocol of lives (cache/lives/life.h).
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/log.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/lives/hot_keys_file.h"
#include "ragfs/cache/lives/life.h"
#include "ragfs/config/config.h"

namespace ragfs {

// A backend that a client is about to show, as far as other processes are concerned.
struct BackendUse {
  std::string identity;          // "" = it has none
  bool process_local = false;    // no other process can reach it
  bool cached = false;           // the cache goes in front of it
  bool changes_outside = false;  // `revalidate_ms`: others write it, and the operator knows
};

class ProcessCache {
  struct Private {};  // only join() makes one

 public:
  explicit ProcessCache(Private) {}
  // Errors: config (the provider, the state directory, other settings than the process runs with); in strict mode those
  // of a provider that cannot be started: in bypass mode `warnings` says so.
  static Result<std::shared_ptr<ProcessCache>> join(const Config& config, const std::vector<BackendUse>& backends,
                                                    std::shared_ptr<Log> log, std::vector<std::string>& warnings);
  // Without close(): as if the process had been killed.
  ~ProcessCache();
  ProcessCache(const ProcessCache&) = delete;
  ProcessCache& operator=(const ProcessCache&) = delete;

  // How `backend` may be used, holding its lock from here on. `enabled` false: `refusal` says who is in the way.
  struct Leave {
    bool enabled = false;
    bool shared = false;  // others write it, so every object has to be checked at every read
    std::string refusal;
  };
  // Errors: those of the state directory.
  Result<Leave> use(const BackendUse& backend);

  // One client less. The last one: ends fills, mutations and erases that wait, leaves the marker, closes the provider,
  // each within a part of the deadline. Errors: the marker could not be written; those of the provider.
  Result<void> leave(Deadline deadline);

  // What the last run read most of this backend, told once: the hot keys go on from there. False: nothing is known.
  bool recall_hot_keys(BackendDomain& backend);

  // It was opened with a cache; without one nothing is ever served from it.
  bool with_cache() const { return with_cache_; }
  CoherenceDomain& domain() { return *domain_; }
  // Keeps the whole alive.
  static std::shared_ptr<CoherenceDomain> share_domain(const std::shared_ptr<ProcessCache>& whole) {
    return {whole, whole->domain_.get()};
  }
  Life& life() { return *life_; }
  CacheProvider& provider() { return *provider_; }
  // The one that the first client brought.
  Log& log() { return *log_; }

 private:
  static Result<std::shared_ptr<ProcessCache>> open_alone(const Config& config, const std::vector<BackendUse>& backends,
                                                          std::shared_ptr<Log> log, std::vector<std::string>& warnings);
  Result<void> open(const Config& config, const std::vector<BackendUse>& backends, std::vector<std::string>& warnings);
  // False when the configured provider cannot be asked yet.
  Result<bool> open_provider_of(const Config& config, std::vector<std::string>& warnings);
  Result<std::string> state_directory(const Config& config, const std::vector<BackendUse>& backends,
                                      std::vector<std::string>& warnings) const;
  // Errors: config, when `config` wants what this one cannot give.
  Result<void> check_joinable(const Config& config, std::vector<std::string>& warnings) const;
  Result<void> close(Deadline deadline);
  void keep_hot_keys() const;

  std::string name_space_;
  bool with_cache_ = false;
  bool off_ = false;     // a provider that could not even be made: nothing to join later
  std::string refusal_;  // who held a backend at the start, so that no cache may be used
  std::vector<std::pair<std::string, std::string>> settings_;  // that all clients share, by key
  std::string state_dir_;                                      // "" = none
  std::shared_ptr<Log> log_;
  std::shared_ptr<CacheProvider> provider_;
  std::unique_ptr<Life> life_;  // outlives the domain
  std::unique_ptr<CoherenceDomain> domain_;
  Mutex recalled_mutex_;
  std::vector<HotKeysOfBackend> recalled_ RAGFS_GUARDED_BY(recalled_mutex_);  // of the last run, not told yet
};

}  // namespace ragfs
