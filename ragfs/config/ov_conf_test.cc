#include "ragfs/config/ov_conf.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ragfs/config/loader.h"

namespace ragfs {
namespace {

const char* const kFull = R"({
  "service_name": "prod-1",
  "server": {"port": 1933, "root_api_key": "k"},
	"embedding": {"dense": {"api_key": "x", "dimension": 1024}, "note": "\ud83d\ude00 \/ \u00e9"},
  "cache": {
    "provider": "redis",
    "params": {
      "mode": "standalone",
      "endpoints": ["redis://127.0.0.1:6379"],
      "command_timeout_ms": 15,
      "pool_size": 8,
      "password_env": "PW"
    }
  },
  "storage": {
    "workspace": "/srv/ov",
    "vectordb": {"backend": "local"},
    "agfs": {
      "backend": "local",
      "queuefs": {"mode": "shared", "backend": "sqlite"},
      "cachefs": {
        "backend": "cache",
        "max_file_size_bytes": 2048,
        "traversal_mode": "cached_traversal",
        "bypass_prefixes": ["/queue", "/local/tmp"]
      },
      "pathlock": {"provider": "memory", "lock_expire_secs": 12.5}
    }
  },
  "log": {"level": "WARNING", "output": "stdout", "rotation": true}
})";

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "ov.conf");
  return config ? "(accepted)" : config.error().message;
}

TEST(OvConf, AFullFileOfOpenVikingIsUnderstood) {
  const auto config = parse_config(kFull, "ov.conf");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->warnings.empty()) << config->warnings[0];
  ASSERT_EQ(config->mounts.size(), 1u);
  EXPECT_EQ(config->mounts[0].path, "/local");
  EXPECT_EQ(config->mounts[0].type, "localfs");
  EXPECT_EQ(config->mounts[0].local_dir, "/srv/ov/viking");
  EXPECT_TRUE(config->cache.enabled);
  EXPECT_EQ(config->cache.provider, "redis");
  EXPECT_EQ(config->cache.name_space, "prod-1");
  EXPECT_EQ(config->cache.max_file_size_bytes, 2048u);
  EXPECT_EQ(config->cache.bypass_prefixes, (std::vector<std::string>{"/queue", "/local/tmp"}));
  EXPECT_EQ(config->cache.effective_operation_timeout_ms(), 15);
  EXPECT_EQ(config->cache.default_ttl_seconds, 3600);
  EXPECT_EQ(config->cache.redis.pool_size, 8);
  EXPECT_EQ(config->cache.redis.password_env, "PW");
  EXPECT_EQ(config->pathlock.lock_expire_secs, 12.5);
  EXPECT_EQ(config->log.level, "warn");
}

TEST(OvConf, AnEmptyObjectMeansTheDefaultsOfOpenViking) {
  const auto config = parse_config("{}", "ov.conf");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->cache.enabled);
  EXPECT_EQ(config->mounts[0].local_dir, (std::filesystem::current_path() / "data/viking").string());
}

TEST(OvConf, MemoryBackendAndTheCacheInThisProcess) {
  const auto config = parse_config(
      R"({"cache": {"provider": "embedded", "params": {"dram_bytes": 8388608}},
          "storage": {"agfs": {"backend": "memory", "cachefs": {"backend": "cache", "namespace": "n"}}}})",
      "ov.conf");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->mounts[0].type, "memfs");
  EXPECT_EQ(config->cache.provider, "embedded");
  EXPECT_EQ(config->cache.name_space, "n");
  EXPECT_EQ(config->cache.embedded.dram_bytes, 8u << 20);
}

TEST(OvConf, ParamsAreLeftAloneWhileTheCacheIsOff) {
  const auto config = parse_config(R"({"cache": {"provider": "dynamic", "params": {"library": "/x.so"}}})", "ov.conf");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->cache.enabled);
}

TEST(OvConf, ErrorsNameTheFieldAsTheFileHasIt) {
  const std::string on = R"("storage": {"agfs": {"cachefs": {"backend": "cache"}}})";
  EXPECT_EQ(
      error_of("{\n\"cache\": {\"provider\": \"redsi\"},\n" + on + "}"),
      "ov.conf:2: cache.provider: \"redsi\" is not allowed; one of embedded, redis, mooncake, yuanrong, memory is "
      "expected; did you mean \"redis\"?");
  EXPECT_EQ(error_of("{\"cache\": {\"provider\": \"redis\", \"params\": {\n\"pool_size\": 0}}, " + on + "}"),
            "ov.conf:2: cache.params.pool_size: 0 is not allowed; an integer from 1 to 1024 is expected");
  EXPECT_NE(error_of("{\"cache\": {\"provider\": \"redis\", \"params\": {\"pool\": 0}}, " + on + "}")
                .find("cache.params.pool: unknown key"),
            std::string::npos);
  EXPECT_NE(error_of("{" + on + "}").find("ov.conf:1: cache: is missing"), std::string::npos);
  EXPECT_NE(error_of("{\"cache\": {}, " + on + "}").find("cache.provider: is missing"), std::string::npos);
  EXPECT_NE(error_of("{\"cache\": {\"provider\": \"dynamic\"}, " + on + "}").find("loads a library into OpenViking"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"storage": {"agfs": {"cache": {"enabled": true}}}})").find("was replaced in OpenViking 0.5"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"storage": {"agfs": {"backend": "s3"}}})").find("s3 is not in this build"), std::string::npos);
  EXPECT_NE(error_of(R"({"storage": {"agfs": {"cachefs": {"traversal_mode": "x"}}}})")
                .find("storage.agfs.cachefs.traversal_mode: \"x\" is not allowed; one of backend, cached_traversal"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"storage": {"workspace": 7}})").find("storage.workspace: 7 is not allowed"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"service_name": 7})").find("service_name: 7 is not allowed; a text"), std::string::npos);
  EXPECT_NE(error_of(R"({"storage": {"agfs": {"pathlock": {"lock_expire_secs": 0.1}}}})")
                .find("storage.agfs.pathlock.lock_expire_secs: 0.1 is not allowed"),
            std::string::npos);
}

TEST(OvConf, WhatIsNotUsedHereIsSaidAsAWarning) {
  const auto config = parse_config(
      "{\"cache\": {\"provider\": \"memory\", \"extra\": 1}, \"storage\": {\"agfs\": {\"cachefs\": {\"backend\": "
      "\"cache\", \"odd\": 1}, \"pathlock\": {\"provider\": \"filesystem\"}}}}",
      "ov.conf");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->warnings.size(), 4u);
  EXPECT_EQ(config->warnings[0], "ov.conf:1: storage.agfs.cachefs.odd: is not known here and ignored");
}

}  // namespace
}  // namespace ragfs
