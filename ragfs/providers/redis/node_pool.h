// NodePool: the connections to one server (one position: the primary, a node of a cluster).
//
// A call takes the least loaded connection; another is opened, up to the configured number, only when all of them are
// busy; beyond that callers share connections and their system calls. Connections are opened on a helper thread, one at
// a time, with the connect timeout: a caller waits for it no longer than its own deadline, and what was begun is there
// for the next one.
//
// Where the server is, `locate` says at each opening. A connection whose server is another than that of the open
// connections ends those first, tells the incarnation, and only then is used. A connection in use asks its server again
// who it is every verify_interval_ms, in front of somebody's commands.
// Thread-safety: all methods may be called from any thread. No lock is held across I/O.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/providers/redis/connection.h"
#include "ragfs/providers/redis/incarnation.h"

namespace ragfs::redis {

enum class ServerRole : uint8_t { primary, replica };

class NodePool {
 public:
  // Where the server may be, best first. Errors: unavailable, timeout.
  using Locate = std::function<Result<std::vector<Endpoint>>(Deadline)>;

  // `incarnation` is told about primaries; both references must outlive the pool.
  NodePool(ClientContext& context, Incarnation& incarnation, std::string position, ServerRole role, Locate locate);
  ~NodePool();
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  // Sends `commands` in one piece and gives their replies, error replies among them. With `repeatable`, they are sent
  // once more when a connection is lost under them; else never. Errors: timeout, unavailable, invalid_data,
  // would_block.
  Result<std::vector<RespValue>> run(std::string_view commands, size_t replies, Deadline deadline, bool repeatable);

  // Asks the server who it is: true when it answers that it is the one it was (then a primary still).
  bool verify(Deadline deadline);
  // Ends all connections; the next call finds the server anew.
  void drop_connections(const std::string& why);
  // Final: calls fail from now on.
  void close();
  size_t connections() const;
  size_t load() const;
  const std::string& position() const { return position_; }

 private:
  Result<std::shared_ptr<Connection>> acquire(Deadline deadline);
  std::shared_ptr<Connection> pick_locked() RAGFS_REQUIRES(mutex_);
  size_t most_locked() const RAGFS_REQUIRES(mutex_);
  void start_opening_locked() RAGFS_REQUIRES(mutex_);
  void open_one();
  Result<std::shared_ptr<Connection>> open_any(Deadline deadline);
  void drop_others_locked(const std::string& identity) RAGFS_REQUIRES(mutex_);
  Result<void> run_on(Connection& connection, Exchange& exchange);
  Result<void> run_verifying(Connection& connection, Exchange& exchange);

  ClientContext& context_;
  Incarnation& incarnation_;
  const std::string position_;
  const ServerRole role_;
  const Locate locate_;

  mutable Mutex mutex_;
  CondVar opened_;
  std::vector<std::shared_ptr<Connection>> connections_ RAGFS_GUARDED_BY(mutex_);
  std::string identity_ RAGFS_GUARDED_BY(mutex_);  // of the open connections
  bool unidentified_ RAGFS_GUARDED_BY(mutex_) = false;
  bool opening_ RAGFS_GUARDED_BY(mutex_) = false;
  bool closed_ RAGFS_GUARDED_BY(mutex_) = false;
  uint64_t failed_openings_ RAGFS_GUARDED_BY(mutex_) = 0;
  Error open_error_ RAGFS_GUARDED_BY(mutex_);
  std::thread opener_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::redis
