// Router: which server has a key. SingleRouter: one primary, fixed or found through Sentinels. (ClusterRouter is in
// cluster_router.h.)
//
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ragfs/providers/redis/node_pool.h"
#include "ragfs/providers/redis/reply_error.h"

namespace ragfs::redis {

class Router {
 public:
  virtual ~Router() = default;

  // True when keys have slots, and slots have owners that redirect.
  virtual bool clustered() const = 0;
  // Who has `slot` (0 where there are none). Errors: unavailable, timeout.
  virtual Result<std::shared_ptr<NodePool>> owner(uint16_t slot, Deadline deadline) = 0;
  // A replica to read from; nullptr where reads go to primaries.
  virtual std::shared_ptr<NodePool> replica() = 0;
  // `from` answered MOVED or ASK: where to. Errors: unavailable.
  virtual Result<std::shared_ptr<NodePool>> redirected(NodePool& from, const Redirect& to, bool moved,
                                                       Deadline deadline) = 0;
  // `pool` answered an error that says that the topology is another, or did not answer.
  virtual void doubt(NodePool& pool) = 0;
  // All primaries that are known, for health checks. Errors: unavailable, timeout.
  virtual Result<std::vector<std::shared_ptr<NodePool>>> primaries(Deadline deadline) = 0;
  virtual void close() = 0;
};

class SingleRouter final : public Router {
 public:
  // Both must outlive the router.
  SingleRouter(ClientContext& context, Incarnation& incarnation);

  bool clustered() const override { return false; }
  Result<std::shared_ptr<NodePool>> owner(uint16_t slot, Deadline deadline) override;
  std::shared_ptr<NodePool> replica() override { return replica_; }
  Result<std::shared_ptr<NodePool>> redirected(NodePool& from, const Redirect& to, bool moved,
                                               Deadline deadline) override;
  void doubt(NodePool& pool) override;
  Result<std::vector<std::shared_ptr<NodePool>>> primaries(Deadline deadline) override;
  void close() override;

 private:
  Result<std::vector<Endpoint>> locate_primary(Deadline deadline);
  Result<std::vector<Endpoint>> locate_replicas(Deadline deadline);
  // The first Sentinel's answer to `commands`.
  Result<RespValue> ask_sentinels(std::string_view commands, Deadline deadline);

  ClientContext& context_;
  const std::shared_ptr<NodePool> primary_;
  const std::shared_ptr<NodePool> replica_;
};

}  // namespace ragfs::redis
