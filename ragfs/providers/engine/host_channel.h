// HostChannel: an engine in a host process of its own, which is started again when it goes.
//
// One thread keeps a HostSession: it starts a host, pings it, kills one that owes an answer for too long, and starts
// the next after a pause that doubles. Calls without a host fail at once. Thread-safety: all methods may be called from
// any thread.
#pragma once

#include <memory>
#include <optional>
#include <thread>

#include "ragfs/base/sync.h"
#include "ragfs/providers/engine/channel.h"
#include "ragfs/providers/engine/host_session.h"

namespace ragfs::engine {

class HostChannel final : public Channel {
 public:
  // `config` must be valid; `incarnation` and `stats` outlive it.
  HostChannel(EngineConfig config, EngineIncarnation& incarnation, EngineStats& stats);
  ~HostChannel() override;

  Result<std::string> call(Op op, std::span<ChannelItem> items, Deadline deadline) override;
  Result<void> health(Deadline deadline) override;
  std::vector<std::string> warnings(Deadline deadline) override;
  Result<void> wait_for_start(Deadline deadline) override;
  Abilities abilities() const override;
  std::string engine_text() const override;
  void append_metrics(std::vector<ProviderMetric>& out) const override;
  Result<void> close(Deadline deadline) override;

 private:
  Result<std::shared_ptr<HostSession>> session() const;
  // A request without items. Its message.
  Result<std::string> ask(Op op, Deadline deadline);
  void supervise();
  // One host's life, from its start to its end; false when it could not be started.
  bool live();
  void watch(HostSession& session);
  // Whether the engine is what callers were told at the first start.
  Result<void> check(const HostSession& session);
  void say(std::string_view line) const;

  const EngineConfig config_;
  EngineIncarnation& incarnation_;
  EngineStats& stats_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<HostSession> session_ RAGFS_GUARDED_BY(mutex_);
  std::optional<Abilities> abilities_ RAGFS_GUARDED_BY(mutex_);
  std::string engine_text_ RAGFS_GUARDED_BY(mutex_);
  std::optional<Error> last_failure_ RAGFS_GUARDED_BY(mutex_);
  bool settled_ RAGFS_GUARDED_BY(mutex_) = false;  // the first start is over, well or not
  bool closing_ RAGFS_GUARDED_BY(mutex_) = false;
  std::thread supervisor_;
};

}  // namespace ragfs::engine
