// ClusterRouter: the slot map of a Redis cluster.
//
// The map is read from any node that answers, on a connection of its own (never one of a pool), by a helper thread, at
// most one at a time and not more often than every 100 ms; callers go on with the map there is. A slot that moves by
// its owner's own word (MOVED, or the owner's own map, while the owner is the primary it always was) took its objects
// along. A slot that another node took over without it may have lost acknowledged writes: that is another incarnation,
// told before the new owner is asked anything.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/providers/redis/key_slot.h"
#include "ragfs/providers/redis/router.h"

namespace ragfs::redis {

// Who owns which slots, as one node sees it: "host:port" for each slot, "" for none.
using SlotOwners = std::vector<std::string>;
// Of an answer to CLUSTER SLOTS; nodes without an address are at `asked`. Empty when it is none.
SlotOwners parse_slots(const RespValue& answer, const std::string& asked_host);

class ClusterRouter final : public Router {
 public:
  // Both must outlive the router.
  ClusterRouter(ClientContext& context, Incarnation& incarnation);
  ~ClusterRouter() override;

  bool clustered() const override { return true; }
  Result<std::shared_ptr<NodePool>> owner(uint16_t slot, Deadline deadline) override;
  std::shared_ptr<NodePool> replica() override { return nullptr; }
  Result<std::shared_ptr<NodePool>> redirected(NodePool& from, const Redirect& to, bool moved,
                                               Deadline deadline) override;
  void doubt(NodePool& pool) override;
  Result<std::vector<std::shared_ptr<NodePool>>> primaries(Deadline deadline) override;
  void close() override;

 private:
  // Waits until there is a map.
  Result<void> wait_for_map_locked(Deadline deadline) RAGFS_REQUIRES(mutex_);
  void refresh_if_due_locked() RAGFS_REQUIRES(mutex_);
  std::shared_ptr<NodePool> pool_locked(const std::string& position) RAGFS_REQUIRES(mutex_);
  void refresh();
  Result<SlotOwners> read_map();
  // True when every slot that changed did so by its old owner's word.
  bool changes_are_orderly(const SlotOwners& before, const SlotOwners& after);
  void meet_all(const SlotOwners& owners);
  void publish(SlotOwners owners);

  ClientContext& context_;
  Incarnation& incarnation_;
  Mutex mutex_;
  CondVar refreshed_;
  SlotOwners owners_ RAGFS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<NodePool>> pools_ RAGFS_GUARDED_BY(mutex_);
  std::thread refresher_ RAGFS_GUARDED_BY(mutex_);
  bool refreshing_ RAGFS_GUARDED_BY(mutex_) = false;
  bool stale_ RAGFS_GUARDED_BY(mutex_) = true;
  bool closed_ RAGFS_GUARDED_BY(mutex_) = false;
  int64_t refreshed_ns_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t seed_ RAGFS_GUARDED_BY(mutex_) = 0;
  Error error_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::redis
