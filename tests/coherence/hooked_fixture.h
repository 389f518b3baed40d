// HookedFixture: CacheFixture with a backend that fails, stalls or throws on command.
//
// For: tests of what the cache does when its backend misbehaves. Not for: tests that need a real directory.
// Thread-safety: as CacheFixture.
#pragma once

#include <memory>
#include <utility>

#include "tests/coherence/fixture.h"
#include "tests/coherence/hooked_file_system.h"

namespace ragfs {

class HookedFixture : public CacheFixture {
 protected:
  void SetUp() override { open_hooked({}, {}); }

  void open_hooked(CoherenceConfig config, CachedMountConfig mount, const Clock& clock = Clock::system()) {
    cached.reset();
    domain.reset();
    auto memory = MemFileSystem::open({});
    ASSERT_TRUE(memory);
    hooked = std::make_shared<HookedFileSystem>(std::shared_ptr<FileSystem>(*std::move(memory)));
    backend = hooked;
    provider = std::make_shared<ScriptedProvider>(clock);
    open_over(std::move(config), std::move(mount), clock);
  }

  // Every call of `operation` answers `code` until the hook is replaced; nothing is done.
  void fail_operation(std::string_view operation, ErrorCode code) {
    hooked->set_before([operation = std::string(operation), code](std::string_view called, PathView path) {
      return called == operation ? std::optional(Error{code, std::string(path.text())}) : std::nullopt;
    });
  }

  std::shared_ptr<HookedFileSystem> hooked;
};

}  // namespace ragfs
