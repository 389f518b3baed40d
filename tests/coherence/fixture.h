// CacheFixture: a memfs behind a CachedFileSystem over a ScriptedProvider, and short names for what tests do with them.
//
// For: tests of the coherence protocol on the real code. Not for: timing.
// Thread-safety: the file systems are; the fixture's helpers may be called from any thread of a test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/cache/cached_file_system.h"
#include "ragfs/cache/rules.h"
#include "ragfs/cache/settler.h"
#include "ragfs/providers/scripted/scripted_provider.h"

namespace ragfs {

inline Path path_of(std::string_view text) { return *Path::parse(text); }

class CacheFixture : public ::testing::Test {
 protected:
  void SetUp() override { open({}, {}); }
  // Ends the domain's thread here: a derived fixture's clock goes before this class's members do.
  void TearDown() override {
    PausePoints::clear();
    cached.reset();
    domain.reset();
  }

  // Builds everything anew; what was stored is gone.
  void open(CoherenceConfig config, CachedMountConfig mount) {
    cached.reset();
    domain.reset();
    auto memory = MemFileSystem::open({});
    ASSERT_TRUE(memory);
    backend = std::shared_ptr<FileSystem>(*std::move(memory));
    provider = std::make_shared<ScriptedProvider>();
    open_over(std::move(config), std::move(mount));
  }
  // Builds domain and cache over the present backend and provider.
  void open_over(CoherenceConfig config, CachedMountConfig mount, const Clock& clock = Clock::system()) {
    ASSERT_TRUE(config.validate());
    ASSERT_TRUE(mount.validate());
    cached.reset();
    DomainStart start;
    start.near = near;
    domain = std::make_shared<CoherenceDomain>(std::move(config), provider, clock, start);
    cached = std::make_shared<CachedFileSystem>(backend, domain, mount);
  }

  // "ERROR <kind>" for a failure, so that one EXPECT_EQ says it all.
  static std::string text_of(const Result<Bytes>& result) {
    return result ? result->str() : "ERROR " + std::string(kind_name(result.error().code));
  }
  std::string read(std::string_view path) { return text_of(cached->read(own(), path_of(path), 0, 0)); }
  template <typename T>
  static std::string kind_of(const Result<T>& result) {
    return result ? "ok" : std::string(kind_name(result.error().code));
  }
  std::string read_backend(std::string_view path) { return text_of(backend->read(own(), path_of(path), 0, 0)); }
  bool write(std::string_view path, std::string_view data, WriteFlag flag = WriteFlag::create) {
    return cached->write(own(), path_of(path), data, 0, flag).has_value();
  }
  bool mkdir(std::string_view path) { return cached->mkdir(own(), path_of(path), kDefaultDirMode).has_value(); }
  // Writes past the cache: what is in the backend before the story begins.
  void put_in_backend(std::string_view path, std::string_view data) {
    const Path target = path_of(path);
    ASSERT_TRUE(backend->ensure_parent_dirs(own(), target, kDefaultDirMode));
    ASSERT_TRUE(backend->write(own(), target, data, 0, WriteFlag::create));
  }
  // Names in a listing, in its order, joined by spaces.
  std::string list(std::string_view path) {
    const auto entries = cached->read_dir(own(), path_of(path));
    if (!entries) return "ERROR " + std::string(kind_name(entries.error().code));
    std::vector<FileInfo> sorted = *entries;
    sort_entries(sorted);
    std::string names;
    for (const FileInfo& entry : sorted) names += (names.empty() ? "" : " ") + entry.name;
    return names;
  }
  std::string stat_size(std::string_view path) {
    const auto info = cached->stat(own(), path_of(path));
    return info ? std::to_string(info->size) : "ERROR " + std::string(kind_name(info.error().code));
  }
  uint64_t hits() const { return cached->count(CacheCounter::file_hit); }

  // One for each call: threads of a test share the fixture, and a call notes things in its context.
  Context own() const { return ctx.for_piece(); }

  Context ctx;
  std::shared_ptr<FileSystem> backend;
  std::shared_ptr<ScriptedProvider> provider;
  std::shared_ptr<CacheProvider> near;  // memory of a near tier; nullptr = none
  std::shared_ptr<CoherenceDomain> domain;
  std::shared_ptr<CachedFileSystem> cached;
};

}  // namespace ragfs
