// Stack: the layers of an instance, put together by hand, for benchmarks that need to set what a configuration does
// not.
//
// Statistics and path locks around a mount table; per mount, statistics around the cache around the backend. Not for:
// the product (config/instance.h does it there). Thread-safety: that of the file system it gives.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "ragfs/cache/cached_file_system.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/path_lock_file_system.h"
#include "ragfs/fs/stats_file_system.h"
#include "ragfs/providers/embedded/embedded_provider.h"

namespace ragfs::bench {

struct Stack {
  std::shared_ptr<FileSystem> backend;
  std::shared_ptr<CoherenceDomain> domain;  // nullptr without a cache
  std::shared_ptr<CachedFileSystem> cached;
  std::shared_ptr<FileSystem> top;

  // The backend at "/", with an embedded cache of `dram_bytes` in front of it.
  static Stack cached_over(std::shared_ptr<FileSystem> backend, uint64_t dram_bytes, CachedMountConfig mount = {},
                           PrefetchConfig prefetch = {}, const Clock& clock = Clock::system()) {
    EmbeddedConfig embedded;
    embedded.dram_bytes = dram_bytes;
    CoherenceConfig config;
    // Benchmarks decide themselves how many records there are: no sweep lets them go.
    config.sweep_interval_ms = 0;
    config.sweep_records = SIZE_MAX;
    // A new epoch is how they empty the cache: what is there from before is no hit, verified or not.
    config.verify_inherited = false;
    config.prefetch = prefetch;
    auto provider = std::shared_ptr<CacheProvider>(*EmbeddedProvider::create(embedded));
    Stack stack;
    stack.backend = backend;
    stack.domain = std::make_shared<CoherenceDomain>(config, std::move(provider), clock);
    stack.cached = std::make_shared<CachedFileSystem>(std::move(backend), stack.domain, mount);
    stack.top = around(stack.cached);
    return stack;
  }
  static Stack uncached_over(std::shared_ptr<FileSystem> backend) {
    Stack stack;
    stack.backend = backend;
    stack.top = around(std::move(backend));
    return stack;
  }

 private:
  static std::shared_ptr<FileSystem> around(std::shared_ptr<FileSystem> mounted) {
    auto table = std::make_shared<MountTable>();
    (void)table->mount(PathView(), std::make_shared<StatsFileSystem>(std::move(mounted)));
    return std::make_shared<StatsFileSystem>(
        std::make_shared<PathLockFileSystem>(std::move(table), std::make_shared<PathLocks>()));
  }
};

}  // namespace ragfs::bench
