// Redis servers that belong together: a primary with a replica and three Sentinels; a cluster of three primaries with a
// replica each. Ready for use when made. Not for: anything but tests. Thread-safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/redis/redis_server.h"

namespace ragfs::redis_test {

class SentinelGroup {
 public:
  static constexpr const char* kName = "main";
  explicit SentinelGroup(bool tls = false);

  std::vector<std::string> endpoints() const;  // of the Sentinels
  RedisServer& primary() { return *primary_; }
  RedisServer& replica() { return *replica_; }
  const RedisServer& sentinel(size_t i) const { return *sentinels_[i]; }
  std::string ca_file() const { return primary_->dir() / "ca.crt"; }
  // The port that the first Sentinel names.
  std::string primary_port() const;
  // Waits until one of the two servers is a replica of the other, whichever: on a machine that stood still for a
  // second, Sentinels may have failed over once more.
  bool has_one_primary() const;
  // What the servers and the Sentinels say of each other, for the message of a test that fails.
  std::string story() const;

 private:
  std::unique_ptr<RedisServer> primary_;
  std::unique_ptr<RedisServer> replica_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

class ClusterGroup {
 public:
  static constexpr size_t kPrimaries = 3;
  explicit ClusterGroup(bool tls = false, size_t nodes = 2 * kPrimaries);

  std::vector<std::string> endpoints() const;
  size_t size() const { return nodes_.size(); }
  RedisServer& node(size_t i) { return *nodes_[i]; }
  // The index of the node that owns `slot`, as node `asked` sees it.
  size_t owner(int slot, size_t asked = 0);
  std::string id_of(size_t i) const;
  std::string ca_file() const { return nodes_[0]->dir() / "ca.crt"; }
  // The slot is on its way, and no key of it yet.
  void begin_migration(int slot, size_t from, size_t to);
  // Moves a slot with its keys, in the order that redis-cli does it.
  void migrate(int slot, size_t from, size_t to);

 private:
  std::vector<std::string> cli_arguments() const;
  const bool tls_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace ragfs::redis_test
