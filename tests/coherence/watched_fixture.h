// WatchedFixture: the CacheFixture with a backend whose mutations fail or land late on command.
//
// For: tests of the coherence protocol under a failing backend. Thread-safety: as CacheFixture.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ragfs/cli/stress/watched_file_system.h"
#include "tests/coherence/fixture.h"

namespace ragfs {

class WatchedFixture : public CacheFixture {
 protected:
  using Fate = stress::WatchedFileSystem::Fate;

  // Everything anew: memfs, watched, under the cache. Late calls land by watched->land_now() alone.
  void open_watched(CoherenceConfig config, CachedMountConfig mount, int64_t late_apply_bound_ms = 60'000,
                    const Clock& clock = Clock::system()) {
    close_watched();
    open({}, {});
    open_watched_over(std::move(config), std::move(mount), late_apply_bound_ms, clock);
  }
  void open_watched_over(CoherenceConfig config, CachedMountConfig mount, int64_t late_apply_bound_ms = 60'000,
                         const Clock& clock = Clock::system()) {
    close_watched();
    stress::BackendFaults faults;
    faults.late_by_hand = true;
    faults.late_apply_bound_ms = late_apply_bound_ms;
    faults.read_error = 1'000'000;
    watched = std::make_shared<stress::WatchedFileSystem>(backend, oracle, faults, 1);
    watched->set_faults(false);
    DomainStart start;
    start.near = near;
    domain = std::make_shared<CoherenceDomain>(std::move(config), provider, clock, start);
    cached = std::make_shared<CachedFileSystem>(watched, domain, mount);
  }
  void close_watched() {
    cached.reset();
    domain.reset();
    watched.reset();
  }
  void TearDown() override {
    PausePoints::clear();
    close_watched();
  }

  static CachedMountConfig with_negative(std::string name) {
    CachedMountConfig mount;
    mount.policy.negative_names = {std::move(name)};
    mount.policy.negative_ttl_ms = 1'000;
    return mount;
  }
  std::string read_past_cache(std::string_view path) {
    Context bypass;
    bypass.bypass_cache = true;
    return text_of(cached->read(bypass, path_of(path), 0, 0));
  }
  bool append(std::string_view path, std::string_view data) { return write(path, data, WriteFlag::append); }
  CacheKey key_of(std::string_view path, ObjectKind kind) {
    const Path at = path_of(path);
    const std::shared_ptr<BackendDomain> identity = domain->backend(backend->traits().identity);
    return domain->key(CachePath(*identity, at), kind);
  }
  // The next erase of the file object of `path` fails; the settler makes no other until `held` goes.
  std::unique_ptr<PausePoints::Armed> fail_next_erase(std::string_view path) {
    provider->add_rule({.op = ScriptedProvider::Op::erase,
                        .key_prefix = std::string(key_of(path, ObjectKind::file).text()),
                        .action = ScriptedProvider::Action::fail,
                        .times = 1});
    return PausePoints::arm("settler.before_erase", 1'000);
  }

  stress::Oracle oracle;
  std::shared_ptr<stress::WatchedFileSystem> watched;
};

}  // namespace ragfs
