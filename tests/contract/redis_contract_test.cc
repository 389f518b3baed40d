// The redis provider over real servers, by the contract of all providers: one server over TCP, a Unix socket and TLS;
// Valkey; behind Sentinels; a cluster, with and without TLS.
#include <chrono>
#include <thread>

#include "ragfs/providers/redis/redis_provider.h"
#include "tests/contract/provider_contract.h"
#include "tests/redis/redis_groups.h"
#include "tests/redis/redis_server.h"

namespace ragfs::contract {
namespace {

using redis_test::ClusterGroup;
using redis_test::RedisServer;
using redis_test::SentinelGroup;

redis::RedisConfig config_over(const std::vector<std::string>& endpoints, redis::Mode mode, const std::string& ca) {
  redis::RedisConfig config;
  config.mode = mode;
  for (const std::string& at : endpoints) config.endpoints.push_back(redis::Endpoint::parse(at).value());
  config.key_prefix = "contract";
  config.tls.ca_file = ca;
  return config;
}

ProviderHarness harness_over(std::shared_ptr<void> engine, redis::RedisConfig config) {
  return {.engine = std::move(engine),
          .provider = std::shared_ptr<CacheProvider>(redis::RedisProvider::create(std::move(config)).value()),
          // The server's own clock is what counts.
          .pass_time = [](int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }};
}

void cause(RedisServer& server, EngineFault fault) {
  if (!server.running()) server.start();
  server.resume();
  server.cli({"ACL", "SETUSER", "default", fault == EngineFault::breaks ? "-@all" : "+@all", "+acl|setuser"});
  if (fault == EngineFault::gone) server.kill();
  if (fault == EngineFault::hangs) server.pause();
}

ProviderCase single(std::string name, bool tls, bool unix_socket, bool valkey = false) {
  return {.name = std::move(name),
          .make =
              [tls, unix_socket, valkey] {
                RedisServer::Options options;
                options.tls = tls;
                if (valkey) options.program = redis_test::valkey_server();
                const auto server = std::make_shared<RedisServer>(options);
                ProviderHarness harness =
                    harness_over(server, config_over({unix_socket ? server->unix_endpoint() : server->endpoint()},
                                                     redis::Mode::standalone, tls ? server->dir() / "ca.crt" : ""));
                harness.set_fault = [server](EngineFault fault) { cause(*server, fault); };
                return harness;
              },
          .faults = {EngineFault::gone, EngineFault::hangs, EngineFault::breaks},
          .ttl_ms = 100};
}

ProviderCase behind_sentinels(std::string name, bool tls) {
  return {.name = std::move(name),
          .make =
              [tls] {
                // Made once: they take seconds. Each test begins on an empty store.
                static const auto plain = std::make_shared<SentinelGroup>(false);
                static const auto secret = std::make_shared<SentinelGroup>(true);
                const auto& group = tls ? secret : plain;
                group->primary().cli({"FLUSHALL"});
                redis::RedisConfig config =
                    config_over(group->endpoints(), redis::Mode::sentinel, tls ? group->ca_file() : "");
                config.master_name = SentinelGroup::kName;
                return harness_over(group, std::move(config));
              },
          .faults = {},
          .ttl_ms = 100};
}

ProviderCase cluster(std::string name, bool tls) {
  return {.name = std::move(name),
          .make =
              [tls] {
                static const auto plain = std::make_shared<ClusterGroup>(false, 3);
                static const auto secret = std::make_shared<ClusterGroup>(true, 3);
                const auto& group = tls ? secret : plain;
                for (size_t i = 0; i < group->size(); ++i) group->node(i).cli({"FLUSHALL"});
                return harness_over(group,
                                    config_over(group->endpoints(), redis::Mode::cluster, tls ? group->ca_file() : ""));
              },
          .faults = {},
          .ttl_ms = 100};
}

RAGFS_PROVIDER_CONTRACT(Redis, single("redis", false, false));
RAGFS_PROVIDER_CONTRACT(RedisUnix, single("redis_unix", false, true));
RAGFS_PROVIDER_CONTRACT(RedisTls, single("redis_tls", true, false));
RAGFS_PROVIDER_CONTRACT(Valkey, single("valkey", false, false, true));
RAGFS_PROVIDER_CONTRACT(RedisSentinel, behind_sentinels("redis_sentinel", false));
RAGFS_PROVIDER_CONTRACT(RedisSentinelTls, behind_sentinels("redis_sentinel_tls", true));
RAGFS_PROVIDER_CONTRACT(RedisCluster, cluster("redis_cluster", false));
RAGFS_PROVIDER_CONTRACT(RedisClusterTls, cluster("redis_cluster_tls", true));

}  // namespace
}  // namespace ragfs::contract
