// The provider as it comes from a configuration: secrets from the environment and from files, a server that comes
// later than the process.
#include <stdlib.h>

#include <fstream>

#include "ragfs/config/factories.h"
#include "ragfs/config/instance.h"
#include "ragfs/config/loader.h"
#include "tests/redis/redis_fixture.h"

namespace ragfs::redis_test {
namespace {

Config configured(const std::string& redis) {
  auto config = parse_config(
      "storage:\n  agfs:\n    mounts:\n      - {path: /m, type: memfs}\n    cache:\n      provider: redis\n"
      "      near_cache_bytes: 0\n      operation_timeout_ms: 500\n      redis: {" +
          redis + "}\n",
      "t.yaml");
  EXPECT_TRUE(config) << config.error().message;
  return *std::move(config);
}

TEST(RedisConfigured, TheSecretComesFromTheEnvironmentOrAFile) {
  RedisServer::Options options;
  options.arguments = {"--requirepass", "s3cret"};
  const RedisServer server(options);
  const std::string endpoint = "endpoints: ['" + server.endpoint() + "'], ";
  const auto works = [&](const std::string& secret) -> std::string {
    auto provider = open_provider(configured(endpoint + secret).cache);
    if (!provider) return provider.error().message;
    const auto stored = put(**provider, 1);
    return stored ? "stored" : stored.error().message;
  };
  ::setenv("RAGFS_TEST_SECRET", "s3cret", 1);
  EXPECT_EQ(works("password_env: RAGFS_TEST_SECRET"), "stored");
  const std::string file = server.dir() / "secret";
  std::ofstream(file) << "s3cret\n";
  EXPECT_EQ(works("password_file: '" + file + "'"), "stored");

  ::unsetenv("RAGFS_TEST_SECRET");
  EXPECT_NE(works("password_env: RAGFS_TEST_SECRET").find("RAGFS_TEST_SECRET is not set"), std::string::npos);
  EXPECT_NE(works("password_file: '" + file + ".none'").find("cannot be read"), std::string::npos);
  std::ofstream(file) << "another";
  const std::string wrong = works("password_file: '" + file + "'");
  EXPECT_NE(wrong.find("WRONGPASS"), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("another"), std::string::npos) << "a secret is never shown";
}

TEST(CaseF17, AProcessThatStartsWithoutRedisServesAndCachesOnceItIsUp) {
  RedisServer server;
  server.kill();
  auto opened = Instance::open(configured("endpoints: ['" + server.endpoint() + "']"));
  ASSERT_TRUE(opened) << opened.error().message;
  Instance& instance = **opened;
  const Context ctx;
  const PathView file = PathView::from_normal("/m/f");
  ASSERT_TRUE(instance.fs().write(ctx, file, "text", 0, WriteFlag::create));
  const auto read = [&] {
    const auto got = instance.fs().read(ctx, file, 0, 0);
    return got ? got->str() : got.error().text();
  };
  EXPECT_EQ(read(), "text");
  EXPECT_EQ(instance.cache_report().hits, 0U);
  server.start();
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(read(), "text");
    return instance.cache_report().hits > 0;
  }));
  server.kill();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read(), "text");
}

}  // namespace
}  // namespace ragfs::redis_test
