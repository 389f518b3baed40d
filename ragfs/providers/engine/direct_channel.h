// DirectChannel: an engine's plug-in in this process: a call runs on its caller's thread.
//
// No hop to another process, and none of its distance: a call ends when the engine's client ends it, and what breaks in
// that client breaks this process. How many calls are inside is bounded by the cache (sdk_concurrency). One thread
// opens the plug-in, again and again while the engine cannot be reached. Thread-safety: all methods may be called from
// any thread.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "ragfs/base/sync.h"
#include "ragfs/engine/plugin.h"
#include "ragfs/providers/engine/channel.h"

namespace ragfs::engine {

class DirectChannel final : public Channel {
 public:
  // `config` must be valid; `incarnation` outlives it.
  DirectChannel(EngineConfig config, EngineIncarnation& incarnation);
  ~DirectChannel() override;

  Result<std::string> call(Op op, std::span<ChannelItem> items, Deadline deadline) override;
  Result<void> health(Deadline deadline) override;
  std::vector<std::string> warnings(Deadline deadline) override;
  Result<void> wait_for_start(Deadline deadline) override;
  Abilities abilities() const override;
  std::string engine_text() const override;
  void append_metrics(std::vector<ProviderMetric>& out) const override;
  // Waits for calls inside too.
  Result<void> close(Deadline deadline) override;

 private:
  // A call inside the plug-in; close() waits for it.
  class Inside;
  struct Shared;  // with the opening thread, which may outlive this object while an SDK hangs in its start
  static void open_until_done(const std::shared_ptr<Shared>& shared);
  void observe(bool failed);

  const std::shared_ptr<Shared> shared_;
  EngineIncarnation& incarnation_;
  std::atomic<int64_t> asked_at_ns_{0};
};

}  // namespace ragfs::engine
