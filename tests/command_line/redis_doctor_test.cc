// What `ragfs doctor` says about a Redis server.
#include <gtest/gtest.h>

#include "tests/command_line/program.h"
#include "tests/redis/redis_server.h"

namespace ragfs::test {
namespace {

using redis_test::RedisServer;

class RedisDoctorCommand : public CommandLineTest {
 protected:
  Outcome doctor(const RedisServer& server) {
    dir_.write("tree/f.md", "content\n");
    dir_.write("ragfs.yaml",
               "storage:\n  agfs:\n    mounts:\n      - {path: /, type: localfs, local_dir: tree}\n    cache:\n"
               "      provider: redis\n      operation_timeout_ms: 1000\n      redis: {endpoints: ['" +
                   server.endpoint() + "']}\n");
    return run({"--config", dir_.file("ragfs.yaml"), "doctor"});
  }
};

TEST_F(RedisDoctorCommand, WarnsOfWhatDoesNotSuitACache) {
  RedisServer::Options options;
  options.arguments = {"--appendonly", "yes", "--save", "60 1"};
  const RedisServer server(options);
  const Outcome unbounded = doctor(server);
  EXPECT_EQ(unbounded.code, 0) << unbounded.out << unbounded.err;
  for (const char* expected : {"works", "has no maxmemory", "append-only file", "saves snapshots"}) {
    EXPECT_TRUE(contains(unbounded.out, expected)) << expected << "\n" << unbounded.out;
  }
  server.cli({"CONFIG", "SET", "maxmemory", "100mb"});
  const Outcome bounded = doctor(server);
  EXPECT_TRUE(contains(bounded.out, "noeviction")) << bounded.out;
  EXPECT_FALSE(contains(bounded.out, "no maxmemory")) << bounded.out;
}

TEST_F(RedisDoctorCommand, HasNothingToSayOfAServerThatIsSetUpAsACache) {
  RedisServer::Options options;
  options.arguments = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu"};
  const RedisServer server(options);
  const Outcome outcome = doctor(server);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_FALSE(contains(outcome.out, "warning")) << outcome.out;
}

TEST_F(RedisDoctorCommand, SaysWhyNobodyIsLetIn) {
  RedisServer::Options options;
  options.arguments = {"--requirepass", "right"};
  const RedisServer server(options);
  const Outcome outcome = doctor(server);
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "redis.password_env")) << outcome.out;
}

}  // namespace
}  // namespace ragfs::test
