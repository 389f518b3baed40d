// HotKeys: an estimate of which objects of a backend are read most, by scope.
//
// A count-min sketch over all paths, and of each scope the few paths with the highest estimates. Callers sample
// (sample()): what it knows is good enough to show and to warm a cache with, and decides nothing else. Counts fade:
// when so many reads were noted, all are halved, so yesterday's favourites give way.
// Bounds: kScopes scopes of kPerScope paths; the scope with the fewest reads makes room.
// Thread-safety: all methods may be called from any thread; short critical sections.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ragfs/base/path.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/key_space.h"

namespace ragfs {

struct HotKey {
  std::string path;  // in the backend's identity
  ObjectKind kind = ObjectKind::file;
  uint64_t reads = 0;  // estimated, faded
  friend bool operator==(const HotKey&, const HotKey&) = default;
};

class HotKeys {
 public:
  static constexpr size_t kScopes = 1024;
  static constexpr size_t kPerScope = 32;

  HotKeys();

  // Whether a read is to be noted, as what it stands for; 0 = it is not. The first ones all are, so that little traffic
  // is seen as it is; then 1 in kOneIn of each thread.
  uint64_t sample() const noexcept {
    if (noted_.load(std::memory_order_relaxed) < kAll) return 1;
    thread_local uint32_t reads = 0;
    return ++reads % kOneIn == 0 ? kOneIn : 0;
  }
  // `reads`: how many reads this one stands for.
  void note(PathView path, ObjectKind kind, uint64_t reads);
  // The hottest at and below `path`, hottest first.
  std::vector<HotKey> top(PathView path, size_t most) const;
  // Those of the scope that `path` lies in. Empty when none is known.
  std::vector<HotKey> of_scope(PathView path, size_t most) const;
  size_t scopes() const;

 private:
  static constexpr size_t kRows = 4;
  static constexpr size_t kColumns = 8192;
  static constexpr uint64_t kFadeEvery = 1 << 20;  // reads
  static constexpr uint32_t kAll = 256;
  static constexpr uint32_t kOneIn = 256;
  using Row = std::array<uint32_t, kColumns>;
  struct Scope {
    std::vector<HotKey> hot;  // at most kPerScope, in no order
    uint64_t reads = 0;
  };
  using Scopes = std::unordered_map<std::string, Scope>;

  uint64_t add(uint64_t hash, uint64_t reads) RAGFS_REQUIRES(mutex_);
  void fade() RAGFS_REQUIRES(mutex_);
  Scope& scope_of(PathView path) RAGFS_REQUIRES(mutex_);

  // Every read looks at it: alone in its line, which nobody writes once it stands at kAll.
  alignas(64) std::atomic<uint32_t> noted_{0};
  alignas(64) mutable Mutex mutex_;
  const std::unique_ptr<std::array<Row, kRows>> sketch_;  // under mutex_
  Scopes scopes_ RAGFS_GUARDED_BY(mutex_);
  uint64_t since_fade_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs
