#include "tests/redis/redis_groups.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("redis test group: " + what);
}

}  // namespace

SentinelGroup::SentinelGroup(bool tls) {
  RedisServer::Options options;
  options.tls = tls;
  options.arguments = {"--repl-diskless-sync-delay", "0"};
  primary_ = std::make_unique<RedisServer>(options);
  options.arguments.insert(options.arguments.end(), {"--replicaof", "127.0.0.1 " + std::to_string(primary_->port())});
  options.certificates_of = primary_->dir().path();
  replica_ = std::make_unique<RedisServer>(options);
  require(primary_->wait_for({"INFO", "replication"}, "state=online"), "the replica does not come into step");
  for (int i = 0; i < 3; ++i) {
    RedisServer::Options sentinel;
    sentinel.sentinel = true;
    sentinel.tls = tls;
    sentinel.certificates_of = primary_->dir().path();
    std::ostringstream lines;
    lines << "sentinel monitor " << kName << " 127.0.0.1 " << primary_->port() << " 2\n"
          << "sentinel down-after-milliseconds " << kName << " 1000\n"
          << "sentinel failover-timeout " << kName << " 3000\n";
    sentinel.sentinel_lines = lines.str();
    sentinels_.push_back(std::make_unique<RedisServer>(sentinel));
  }
  const std::string master = std::string("SENTINEL");
  for (const auto& at : sentinels_) {
    require(at->wait_for({"SENTINEL", "MASTER", kName}, "num-other-sentinels\n2"), "Sentinels do not meet");
    require(at->wait_for({"SENTINEL", "MASTER", kName}, "num-slaves\n1"), "Sentinels do not see the replica");
  }
}

std::vector<std::string> SentinelGroup::endpoints() const {
  std::vector<std::string> out;
  for (const auto& at : sentinels_) out.push_back(at->endpoint());
  return out;
}

std::string SentinelGroup::primary_port() const {
  const std::string answer = sentinels_[0]->cli({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", kName});
  return answer.substr(answer.find('\n') + 1);
}

bool SentinelGroup::has_one_primary() const {
  const auto is = [](const RedisServer& at, std::string_view role) { return at.cli({"ROLE"}).starts_with(role); };
  return eventually([&] {
    return (is(*primary_, "slave") && is(*replica_, "master")) || (is(*primary_, "master") && is(*replica_, "slave"));
  });
}

std::string SentinelGroup::story() const {
  std::string out = "first: " + primary_->cli({"ROLE"}) + "\nsecond: " + replica_->cli({"ROLE"});
  for (const auto& at : sentinels_) {
    out += "\nSentinel: " + at->cli({"SENTINEL", "MASTER", kName}) + at->cli({"SENTINEL", "REPLICAS", kName});
  }
  return out;
}

ClusterGroup::ClusterGroup(bool tls, size_t nodes) : tls_(tls) {
  for (size_t i = 0; i < nodes; ++i) {
    RedisServer::Options options;
    options.tls = tls;
    if (!nodes_.empty()) options.certificates_of = nodes_[0]->dir().path();
    options.arguments = {"--cluster-enabled",      "yes",  "--cluster-config-file",      "nodes.conf",
                         "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"};
    nodes_.push_back(std::make_unique<RedisServer>(options));
  }
  std::vector<std::string> create = cli_arguments();
  create.insert(create.end(), {"--cluster", "create"});
  for (const auto& at : nodes_) create.push_back("127.0.0.1:" + std::to_string(at->port()));
  create.insert(create.end(), {"--cluster-replicas", nodes >= 2 * kPrimaries ? "1" : "0", "--cluster-yes"});
  std::string out;
  require(run_program(create, &out) == 0, out);
  for (const auto& at : nodes_) {
    require(at->wait_for({"CLUSTER", "INFO"}, "cluster_state:ok"), "the cluster does not come up");
    if (at->cli({"ROLE"}).starts_with("slave")) {
      require(at->wait_for({"INFO", "replication"}, "master_link_status:up"), "a replica does not come into step");
    }
  }
}

std::vector<std::string> ClusterGroup::cli_arguments() const {
  if (!tls_) return {"redis-cli"};
  return {"redis-cli", "--tls", "--cacert", ca_file()};
}

std::vector<std::string> ClusterGroup::endpoints() const {
  std::vector<std::string> out;
  for (const auto& at : nodes_) out.push_back(at->endpoint());
  return out;
}

std::string ClusterGroup::id_of(size_t i) const { return nodes_[i]->cli({"CLUSTER", "MYID"}); }

size_t ClusterGroup::owner(int slot, size_t asked) {
  std::istringstream lines(nodes_[asked]->cli({"CLUSTER", "SLOTS"}));
  std::string first;
  std::string last;
  std::string host;
  // Every range: first, last, then nodes of host, port, id, (metadata); the first node is the primary.
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  for (size_t i = 0; i + 3 < all.size(); ++i) {
    if (all[i + 2] != "127.0.0.1") continue;
    if (all[i].find_first_not_of("0123456789") != std::string::npos || all[i].empty()) continue;
    if (all[i + 1].find_first_not_of("0123456789") != std::string::npos || all[i + 1].empty()) continue;
    if (std::stoi(all[i]) > slot || std::stoi(all[i + 1]) < slot) continue;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (std::to_string(nodes_[node]->port()) == all[i + 3]) return node;
    }
  }
  return nodes_.size();
}

void ClusterGroup::begin_migration(int slot, size_t from, size_t to) {
  const std::string number = std::to_string(slot);
  nodes_[to]->cli({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)});
  nodes_[from]->cli({"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(to)});
}

void ClusterGroup::migrate(int slot, size_t from, size_t to) {
  begin_migration(slot, from, to);
  const std::string number = std::to_string(slot);
  const std::string target = id_of(to);
  for (;;) {
    std::istringstream keys(nodes_[from]->cli({"CLUSTER", "GETKEYSINSLOT", number, "100"}));
    std::vector<std::string> move = {"MIGRATE", "127.0.0.1", std::to_string(nodes_[to]->port()), "", "0",
                                     "5000",    "KEYS"};
    const size_t fixed = move.size();
    for (std::string key; std::getline(keys, key);) {
      if (!key.empty()) move.push_back(key);
    }
    if (move.size() == fixed) break;
    nodes_[from]->cli(move);
  }
  nodes_[to]->cli({"CLUSTER", "SETSLOT", number, "NODE", target});
  nodes_[from]->cli({"CLUSTER", "SETSLOT", number, "NODE", target});
}

}  // namespace ragfs::redis_test
