// Channel: the way to an engine: a host process beside this one, or the plug-in in this process.
//
// Knows keys and bytes, and nothing of how the provider seals values. Thread-safety: all methods may be called from any
// thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/context.h"
#include "ragfs/cache/incarnation_listener.h"
#include "ragfs/engine/wire.h"
#include "ragfs/providers/engine/engine_config.h"
#include "ragfs/providers/engine/engine_stats.h"

namespace ragfs::engine {

// One key of a call, and its answer.
struct ChannelItem {
  std::string_view key;
  std::array<std::string_view, 3> parts = {};  // put: the value, one after the other
  uint64_t capacity = 0;                       // get: bytes expected at most
  int64_t ttl_ms = 0;
  bool preferred = false;

  int32_t status = 0;  // a ragfs_engine_v1_status
  int32_t engine_code = 0;
  uint64_t size = 0;  // get: of the value, also when it did not fit
  Bytes value = {};   // get

  uint64_t put_bytes() const { return parts[0].size() + parts[1].size() + parts[2].size(); }
};

class Channel {
 public:
  virtual ~Channel() = default;

  // get, put, erase or put_if_absent_tx (one batch). Each item has its answer afterwards; the result is what the engine
  // said of its last failure. Errors: unavailable (nobody to ask), timeout: what became of the items is not known;
  // too_large: an atomic put that has no room.
  virtual Result<std::string> call(Op op, std::span<ChannelItem> items, Deadline deadline) = 0;
  virtual Result<void> health(Deadline deadline) = 0;
  virtual std::vector<std::string> warnings(Deadline deadline) = 0;
  // Waits until the engine was reached, it is known that it cannot be, or the deadline. Errors: config: it never will.
  virtual Result<void> wait_for_start(Deadline deadline) = 0;
  // As of the first time that the engine was reached; what was assumed before.
  virtual Abilities abilities() const = 0;
  virtual std::string engine_text() const = 0;  // name and version; "" = never reached
  virtual void append_metrics(std::vector<ProviderMetric>& out) const = 0;
  // Errors: timeout; unavailable: it ended with a failure.
  virtual Result<void> close(Deadline deadline) = 0;
};

// One id over the engine's own incarnation and the hosts' lives, and who wants to know that it changed.
class EngineIncarnation {
 public:
  explicit EngineIncarnation(std::string name) : name_(std::move(name)) {}
  // An answer came that was made under `hash` of the engine's own. One seen before is a late answer.
  void observe(uint64_t hash);
  // A host is gone, and what it had not yet done is not known.
  void host_gone();
  std::string text() const;
  uint64_t changes() const;
  void watch(std::function<void()> listener) { listener_.watch(std::move(listener)); }

 private:
  static constexpr size_t kRemembered = 64;
  const std::string name_;
  std::atomic<uint64_t> current_{0};  // the hash; 0 = none yet
  mutable Mutex mutex_;
  std::vector<uint64_t> seen_ RAGFS_GUARDED_BY(mutex_);
  uint64_t salt_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t changes_ RAGFS_GUARDED_BY(mutex_) = 0;
  IncarnationListener listener_;
};

}  // namespace ragfs::engine
