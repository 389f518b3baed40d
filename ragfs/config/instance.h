// Instance: a running RAGFS, put together from a Config.
//
// Opens every backend, joins the mounts to one tree, puts the cache before those that want it, and statistics and path
// locks around all of it. Interfaces (CLI, server, Python) own one Instance and call fs(). Not for: deciding anything
// about a single call. Thread-safety: all methods but close() may be called from any thread at any time; fs() and what
// it returns may be used until close() is called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"
#include "ragfs/config/cache_layer.h"
#include "ragfs/config/config.h"
#include "ragfs/fs/file_system.h"
#include "ragfs/fs/operation_stats.h"

namespace ragfs {

struct MountStatus {
  std::string path;
  std::string type;
  std::string detail;   // what the operator knows it by: the directory
  bool cached = false;  // a cache is in use in front of it
};

// Calls of one mount, whether they were answered by the cache or not.
struct MountOperations {
  std::string path;
  std::string type;
  std::vector<OperationSnapshot> operations;
};

class Instance {
 public:
  // Errors: config (a provider that is unknown or not in this build, a directory that does not exist, ...); in strict
  // mode those of a provider that cannot be started.
  static Result<std::unique_ptr<Instance>> open(const Config& config);
  // Closes, when that has not been done.
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  FileSystem& fs();
  const Config& config() const;
  std::vector<MountStatus> mounts() const;
  // One more mount while the process runs. Errors: mount_point_exists; config, as at start.
  Result<void> mount(const MountConfig& config);
  // Calls in flight end on what they began with. Errors: mount_point_not_found.
  Result<void> unmount(PathView path);
  // What the operator should know and that was no reason not to start.
  std::vector<std::string> warnings() const;

  CacheReport cache_report() const;
  std::vector<MountOperations> operations() const;
  // Off: reads ask the backends and nothing is stored; mutations are recorded all the same, so that turning it on again
  // serves nothing stale. Errors: not_supported without a cache.
  Result<void> set_cache_on(bool on);
  // Refuses every object that was cached until now. Errors: not_supported without a cache.
  Result<void> flush_cache();
  // As flush_cache(), for the runs to come too; in place by the deadline. After a backup was restored beside the cache.
  // Errors: not_supported without a cache; unavailable (another process writes, or the cache is off); timeout.
  Result<void> new_epoch(Deadline deadline);
  // Back into the cache after another writer was seen there. Errors: as new_epoch().
  Result<void> rejoin_cache(Deadline deadline);
  // Refuses what was cached of `path` and all below it until now. Errors: not_supported without a cache; timeout.
  Result<void> invalidate(PathView path);
  // Compares what is cached at and below `path` with the backends; what is wrong is refused from then on. Errors:
  // not_supported without a cache; not_found; timeout.
  Result<VerifyReport> verify_cache(const Context& ctx, PathView path);
  // Erases the objects of an account (the first name below a mount) from the cache, its disks and this process's
  // copies; how many copies. What is read of it later is cached anew. Errors: not_supported without a cache, or where
  // the provider cannot look through its objects; timeout, and those of the provider: some may be left.
  Result<uint64_t> purge_account(std::string_view account, Deadline deadline = Deadline::never());
  // What was read most at and below `path`, by this run and faintly by the last one, hottest first. Errors:
  // not_supported without a cache.
  Result<std::vector<HotKey>> hot_keys(PathView path, size_t most);
  // Reads of these what is not cached. Errors: not_supported without a cache; timeout.
  Result<WarmReport> warm_cache(const Context& ctx, PathView path);
  // Asks the provider whether it works. Errors: not_supported without a cache; those of the provider.
  Result<void> check_provider(Deadline deadline);
  // What an operator should know about how the provider's engine is set up, a sentence each.
  std::vector<std::string> provider_warnings(Deadline deadline);

  // Ends work in flight within the deadline, then takes everything down in order. Final and idempotent.
  Result<void> close(Deadline deadline);

 private:
  struct Parts;
  explicit Instance(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ragfs
