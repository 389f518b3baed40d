// CachedStack: the handed bug reports run on every pairing of a backend (memfs, localfs) with a provider (scripted,
// embedded), cache in front, a hook under it.
//
// For: tests named by the ID of their report. `cached` and `second` are two mounts of one backend in one process, the
// "two readers" of the reports. Not for: reports about one backend alone (tests/contract).
// Thread-safety: the file systems are; the rest belongs to the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"
#include "tests/contract/backend_contract.h"

namespace ragfs {

struct StackKind {
  bool local = false;     // localfs instead of memfs
  bool embedded = false;  // the embedded provider instead of the scripted one
};

inline std::string stack_name(const ::testing::TestParamInfo<StackKind>& info) {
  return std::string(info.param.local ? "localfs" : "memfs") + (info.param.embedded ? "_embedded" : "_scripted");
}
inline void PrintTo(const StackKind& kind, std::ostream* out) {
  *out << (kind.local ? "localfs " : "memfs ") << (kind.embedded ? "embedded" : "scripted");
}

inline const auto& all_stacks() {
  static const auto stacks =
      ::testing::Values(StackKind{false, false}, StackKind{false, true}, StackKind{true, false}, StackKind{true, true});
  return stacks;
}

// For tests that script the provider or look into it.
inline const auto& scripted_stacks() {
  static const auto stacks = ::testing::Values(StackKind{false, false}, StackKind{true, false});
  return stacks;
}

class CachedStack : public HookedFixture, public ::testing::WithParamInterface<StackKind> {
 protected:
  void SetUp() override { open_stack({}, {}); }
  void TearDown() override {
    second.reset();
    HookedFixture::TearDown();
  }

  void open_stack(CoherenceConfig config, CachedMountConfig mount, const Clock& used_clock = Clock::system()) {
    second.reset();
    cached.reset();
    domain.reset();
    std::shared_ptr<FileSystem> inner;
    if (GetParam().local) {
      dir = std::make_unique<contract::TempDir>();
      inner = LocalFileSystem::open({.root_dir = dir->path()}).value();
    } else {
      inner = MemFileSystem::open({}).value();
    }
    hooked = std::make_shared<HookedFileSystem>(std::move(inner));
    backend = hooked;
    provider = std::make_shared<ScriptedProvider>(used_clock);
    std::shared_ptr<CacheProvider> used = provider;
    if (GetParam().embedded) used = EmbeddedProvider::create({.dram_bytes = 16 << 20, .clock = &used_clock}).value();
    ASSERT_TRUE(config.validate() && mount.validate());
    domain = std::make_shared<CoherenceDomain>(std::move(config), std::move(used), used_clock);
    cached = std::make_shared<CachedFileSystem>(backend, domain, mount);
    mount.mount_path = "/second";
    second = std::make_shared<CachedFileSystem>(backend, domain, mount);
  }
  std::string read_second(std::string_view path) { return text_of(second->read(own(), path_of(path), 0, 0)); }
  // Both readers, twice each: what one fills the other must get right.
  void expect_read(std::string_view path, std::string_view expected) {
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(read(path), expected) << path;
      EXPECT_EQ(read_second(path), expected) << path;
    }
  }

  ManualClock clock;  // for tests that open the stack with it
  std::unique_ptr<contract::TempDir> dir;
  std::shared_ptr<CachedFileSystem> second;
};

}  // namespace ragfs
