// StressSetting: which provider, which faults and which options of the cache a stress run works with; and Stack, all of
// it built.
//
// For: the runners, the tests and `ragfs bench coherence`. A setting is a value; later providers and backends add one
// of their own. Thread-safety: a Stack's parts are; building and destroying it belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/lives/life.h"
#include "ragfs/cli/stress/faulty_provider.h"
#include "ragfs/cli/stress/oracle.h"
#include "ragfs/cli/stress/watched_file_system.h"
#include "ragfs/cli/stress/workload.h"

namespace ragfs::stress {

struct StressSetting {
  std::string name;
  // The engine under the faults. Errors: the engine's own.
  std::function<Result<std::shared_ptr<CacheProvider>>()> provider;
  // The backend under the oracle, empty. Absent: memfs.
  std::function<Result<std::shared_ptr<FileSystem>>()> backend;
  // Changes what the provider says of itself (it can only be made less able). Absent: as it is.
  std::function<void(ProviderCapabilities&)> limit;
  uint64_t near_bytes = 0;  // of a near tier in front of the provider; 0 = none
  bool life = false;        // pointer and witness as a real process has them: the cache is left and joined again
  ProviderFaults provider_faults;
  BackendFaults backend_faults;
  CoherenceConfig domain;
  CachedMountConfig mount;
  WorkloadConfig workload;
};

// The settings of ./test: embedded, scripted engines with and without each ability, small tables, negative entries, ...
const std::vector<StressSetting>& standard_settings();
// Errors: config, naming the settings there are.
Result<StressSetting> find_setting(std::string_view name);

// A setting over an engine that is there. What is out of process is failed, delayed and cut off as well.
// The setting has the engine's name.
StressSetting setting_over(std::shared_ptr<CacheProvider> engine);

class Stack {
 public:
  // Errors: config, and those of the provider and the backend.
  static Result<std::unique_ptr<Stack>> build(const StressSetting& setting, uint64_t seed);
  ~Stack();

  Oracle& oracle() { return oracle_; }
  const Layout& layout() const { return *layout_; }
  WatchedFileSystem& backend() { return *watched_; }
  FaultyProvider& provider() { return *provider_; }
  CoherenceDomain& domain() { return *domain_; }
  // nullptr without one.
  Life* life() { return life_.get(); }
  std::vector<FileSystem*> mounts() const;
  uint64_t count(CacheCounter counter) const;
  // Ends all faults and what is still to land.
  void calm();

 private:
  Stack() = default;
  // Errors: those of the state directory.
  Result<DomainStart> begin_life(const StressSetting& setting);
  Oracle oracle_;
  std::unique_ptr<Layout> layout_;
  std::shared_ptr<WatchedFileSystem> watched_;
  std::shared_ptr<FaultyProvider> provider_;
  std::string state_dir_;
  std::unique_ptr<Life> life_;  // outlives the domain
  std::shared_ptr<CoherenceDomain> domain_;
  std::vector<std::shared_ptr<CachedFileSystem>> mounts_;
};

}  // namespace ragfs::stress
