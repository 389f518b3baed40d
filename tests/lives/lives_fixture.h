// LivesFixture: a backend and a provider that stay, and lives of the cache over them that come and go.
//
// For: tests of restarts, closes, failovers and second writers. The provider is the scripted one, which outlives its
// lives here; ending a OneLife without close() is a crash. The lives' own threads are kept quiet: tests call tend().
// Not for: real process ends (crash_test.cc). Thread-safety: as the parts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/lives/life.h"
#include "ragfs/cache/rules.h"
#include "ragfs/cache/settler.h"
#include "ragfs/providers/scripted/scripted_provider.h"

namespace ragfs {

struct RunOptions {
  LifeConfig life;
  CoherenceConfig domain;
  CachedMountConfig mount;
  const Clock* clock = &Clock::system();
};

// A life with its domain and one mount.
class OneLife {
 public:
  OneLife(const RunOptions& options, const std::shared_ptr<FileSystem>& backend,
          const std::shared_ptr<CacheProvider>& provider) {
    CachedMountConfig mount = options.mount;
    mount.enabled = mount.enabled && !options.life.off;
    life = std::make_unique<Life>(options.life, provider, PosixFiles::system(), *options.clock);
    if (mount.enabled && !mount.use.process_local) {
      const Result<LockKind> kind = life->hold(hash64(backend->traits().identity));
      if (!kind) refusal = kind.error().message;
      if (!kind) mount.enabled = false;
      if (kind && *kind == LockKind::shared) mount.use.shared = true;
    }
    domain = std::make_shared<CoherenceDomain>(options.domain, provider, *options.clock, life->start());
    fs = std::make_shared<CachedFileSystem>(backend, domain, mount);
    life->attach(*domain);
  }
  ~OneLife() { end(); }
  OneLife(const OneLife&) = delete;
  OneLife& operator=(const OneLife&) = delete;

  // Without close() before it, the process was killed.
  void end() {
    fs.reset();
    if (life) stop_life();
    domain.reset();
    life.reset();
  }
  bool close(int64_t timeout_ms = 20'000) {
    const Result<bool> written = life->close(Deadline::in_ms(timeout_ms));
    return written && *written;
  }

  std::string read(std::string_view path) {
    const Result<Bytes> got = fs->read(ctx, *Path::parse(path), 0, 0);
    return got ? got->str() : "ERROR " + std::string(kind_name(got.error().code));
  }
  std::string write(std::string_view path, std::string_view data) {
    const auto done = fs->write(ctx, *Path::parse(path), data, 0, WriteFlag::create);
    return done ? "ok" : std::string(kind_name(done.error().code));
  }
  std::string remove(std::string_view path) {
    const auto done = fs->remove(ctx, *Path::parse(path));
    return done ? "ok" : std::string(kind_name(done.error().code));
  }
  // Reads, and says whether the answer came from the cache.
  bool hits(std::string_view path) {
    const uint64_t before = fs->count(CacheCounter::file_hit);
    (void)read(path);
    return fs->count(CacheCounter::file_hit) > before;
  }
  LifeStage stage() const { return life->report().stage; }
  bool warm() const { return life->report().warm; }

  Context ctx;
  std::unique_ptr<Life> life;
  std::shared_ptr<CoherenceDomain> domain;
  std::shared_ptr<CachedFileSystem> fs;
  std::string refusal;  // why the lock was not got

 private:
  // The thread uses the domain, so it ends first; nothing is written.
  void stop_life() { life->stop_thread(); }
};

class LivesFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "lives-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    fresh_world();
  }
  void TearDown() override {
    PausePoints::clear();
    std::filesystem::remove_all(root);
  }
  // Another backend, provider and state directory; nothing is remembered.
  void fresh_world() {
    auto memory = MemFileSystem::open({});
    ASSERT_TRUE(memory);
    backend = std::shared_ptr<FileSystem>(*std::move(memory));
    provider = std::make_shared<ScriptedProvider>();
    options = RunOptions();
    options.life.state_dir = root + "/state" + std::to_string(++worlds);
    options.life.pointer_check_ms = 600'000;
    options.life.retry_ms = 600'000;
    options.life.call_timeout_ms = 2'000;
    // Stories about epochs must not be saved by a version check, but where they are about it.
    options.domain.verify_inherited = false;
    options.domain.sweep_interval_ms = 0;
    options.domain.retry_first_ms = 5;
  }
  std::unique_ptr<OneLife> begin() { return std::make_unique<OneLife>(options, backend, provider); }
  std::unique_ptr<OneLife> begin_off() {
    RunOptions off = options;
    off.life.off = true;
    return std::make_unique<OneLife>(off, backend, provider);
  }
  void remote_provider() {
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.zero_copy = false;
    capabilities.enumerates = false;
    provider->set_capabilities(capabilities);
  }

  void put_in_backend(std::string_view path, std::string_view data) {
    const Path target = *Path::parse(path);
    ASSERT_TRUE(backend->ensure_parent_dirs(ctx, target, kDefaultDirMode));
    ASSERT_TRUE(backend->write(ctx, target, data, 0, WriteFlag::create));
  }
  std::string truth(std::string_view path) {
    const Result<Bytes> got = backend->read(ctx, *Path::parse(path), 0, 0);
    return got ? got->str() : "ERROR " + std::string(kind_name(got.error().code));
  }
  bool stale(OneLife& run, std::string_view path) { return run.read(path) != truth(path); }
  // A life that reads `path` and closes in order; its marker was written.
  void live_and_close(std::string_view path) {
    auto run = begin();
    (void)run->read(path);
    ASSERT_TRUE(run->close());
  }

  Context ctx;
  std::string root;
  int worlds = 0;
  RunOptions options;
  std::shared_ptr<FileSystem> backend;
  std::shared_ptr<ScriptedProvider> provider;
};

}  // namespace ragfs
