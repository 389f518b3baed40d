#include "ragfs/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ragfs/config/field_text.h"
#include "ragfs/config/loader.h"
#include "ragfs/config/node.h"
#include "ragfs/config/schema.h"
#include "ragfs/config/section_parser.h"

namespace ragfs {
namespace {

std::string error_of(const std::string& text) {
  const auto config = parse_config(text, "t.yaml");
  return config ? "(accepted)" : config.error().message;
}

const std::string kOneMount = "storage:\n  agfs:\n    mounts: [{path: /, type: memfs}]\n";

TEST(Config, DefaultsAreThoseOfTheDesign) {
  const auto config = parse_config(kOneMount, "t.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->cache.enabled);
  EXPECT_EQ(config->cache.provider, "embedded");
  EXPECT_EQ(config->cache.failure_mode, "bypass");
  EXPECT_EQ(config->cache.effective_operation_timeout_ms(), 50);
  EXPECT_EQ(config->cache.sdk_concurrency, 16);
  EXPECT_EQ(config->cache.name_space, "openviking");
  EXPECT_EQ(config->cache.max_file_size_bytes, 1u << 20);
  EXPECT_EQ(config->cache.max_listing_bytes, 1u << 20);
  EXPECT_EQ(config->cache.near_cache_bytes, 64u << 20);
  EXPECT_EQ(config->cache.negative.ttl_ms, 0);
  CacheConfig redis;
  redis.provider = "redis";
  EXPECT_EQ(redis.effective_operation_timeout_ms(), 20);
  redis.operation_timeout_ms = 7;
  EXPECT_EQ(redis.effective_operation_timeout_ms(), 7);
}

TEST(Config, AllProblemsAreReportedAtOnce) {
  const std::string message = error_of(
      "storage:\n  agfs:\n    mounts: [{path: /, type: memfs}]\n    cache:\n      enabled: 3\n      sdk: 1\n"
      "log:\n  level: loud\n");
  EXPECT_NE(message.find("t.yaml:5: storage.agfs.cache.enabled: 3 is not allowed"), std::string::npos) << message;
  EXPECT_NE(message.find("\nt.yaml:6: storage.agfs.cache.sdk: unknown key"), std::string::npos) << message;
  EXPECT_NE(message.find("\nt.yaml:8: log.level: \"loud\""), std::string::npos) << message;
}

TEST(Config, TextWithoutAnEndOfDocumentsEnds) {
  for (const char* text : {",", ",0\"s{", "]", "a: 1\n,", "}"}) {
    EXPECT_EQ(error_of(text).find("t.yaml:"), 0u) << text << ": " << error_of(text);
  }
}

TEST(Config, BrokenDocumentsNameThePlace) {
  EXPECT_EQ(error_of("a: [1\nb: 2\n").find("t.yaml:2:"), 0u) << error_of("a: [1\nb: 2\n");
  EXPECT_NE(error_of("a: [1\nb: 2\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(error_of("a: 1\n---\nb: 1\n").find("t.yaml:3: a second document"), std::string::npos);
  EXPECT_EQ(error_of("{\"a\": 1,\n \"b\": }").find("t.yaml:2:"), 0u) << error_of("{\"a\": 1,\n \"b\": }");
  EXPECT_NE(error_of("{\"a\": 1}x").find("not valid JSON"), std::string::npos) << error_of("{\"a\": 1}x");
  EXPECT_NE(error_of("").find("t.yaml:1: the file is empty"), std::string::npos);
  EXPECT_NE(error_of("just words\n").find("t.yaml:1: (top): just words is not allowed"), std::string::npos);
  EXPECT_NE(error_of("- a\n- b\n").find("a list is not allowed"), std::string::npos);
  EXPECT_NE(error_of("log: {level: info}\nlog: {level: warn}\n").find("\"log\" is given twice (first on line 1)"),
            std::string::npos);
  EXPECT_NE(error_of("? [a]\n: b\n").find("a key must be a word"), std::string::npos);
  EXPECT_NE(error_of(std::string("log: \0\n", 7)).find("NUL byte"), std::string::npos);
  EXPECT_NE(error_of(std::string(kMaxConfigBytes + 1, '#')).find("larger than"), std::string::npos);
  EXPECT_NE(error_of(kOneMount + "log:\n  level:\n").find("log.level: has no value; one of debug"), std::string::npos);
}

TEST(Config, HugeAndDeepDocumentsAreRefused) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{a: ";
  EXPECT_NE(error_of("x: " + deep + "1" + std::string(100, '}')).find("nested deeper than 64"), std::string::npos);
  std::string laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c <= 'h'; ++c) {
    const char before = static_cast<char>(c - 1);
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) laughs += std::string(i == 0 ? "*" : ",*") + before;
    laughs += "]\n";
  }
  EXPECT_NE(error_of(laughs).find("more than 100000 values"), std::string::npos);
}

TEST(Config, MountsAreCheckedAgainstEachOther) {
  EXPECT_NE(error_of("storage: {agfs: {cache: {enabled: true}}}").find("storage.agfs.mounts"), std::string::npos);
  const std::string twice =
      "storage:\n  agfs:\n    mounts:\n      - {path: /a, type: memfs}\n      - {path: /a/, type: memfs}\n";
  EXPECT_EQ(error_of(twice), "t.yaml:5: storage.agfs.mounts[1].path: /a is mounted twice");
  EXPECT_NE(error_of("storage: {agfs: {mounts: [{path: /, type: localfs}]}}").find("local_dir: is missing; localfs"),
            std::string::npos);
  EXPECT_NE(error_of("storage: {agfs: {mounts: [{path: /, type: memfs, local_dir: /x}]}}")
                .find("belongs to type localfs, not to memfs"),
            std::string::npos);
  EXPECT_NE(error_of("storage: {agfs: {mounts: [{type: memfs}]}}").find("mounts[0].path: is missing"),
            std::string::npos);
  EXPECT_NE(error_of("storage: {agfs: {mounts: [7]}}").find("mounts[0]: 7 is not allowed; a section"),
            std::string::npos);
  EXPECT_NE(error_of("storage: {agfs: {mounts: {path: /}}}").find("a list of sections is expected"), std::string::npos);
  EXPECT_NE(error_of("storage: {agfs: {mounts: [{path: /a/../b, type: memfs}]}}").find("mounts[0].path"),
            std::string::npos);
}

TEST(Config, RulesBetweenFields) {
  const auto with_cache = [](const std::string& cache) { return error_of(kOneMount + "    cache: " + cache + "\n"); };
  EXPECT_NE(with_cache("{redis: {mode: sentinel}}").find("t.yaml:4: storage.agfs.cache.redis.master_name: is missing"),
            std::string::npos)
      << with_cache("{redis: {mode: sentinel}}");
  EXPECT_NE(with_cache("{redis: {mode: cluster, db: 2}}").find("redis.db: 2 is not allowed"), std::string::npos);
  EXPECT_NE(with_cache("{redis: {password_env: A, password_file: /b}}").find("both given"), std::string::npos);
  EXPECT_NE(with_cache("{redis: {endpoints: []}}").find("redis.endpoints: is empty"), std::string::npos);
  EXPECT_NE(with_cache("{redis: {endpoints: ['redis://u:p@h:1']}}").find("carries a user or password"),
            std::string::npos);
  EXPECT_NE(with_cache("{redis: {tls_insecure_skip_verify: true}}").find("needs rediss://"), std::string::npos);
  EXPECT_NE(with_cache("{mooncake: {protocol: ub}}").find("device_name: is missing; protocol ub"), std::string::npos);
  EXPECT_NE(with_cache("{max_file_size_bytes: 4MiB, embedded: {dram_bytes: 2MiB}}").find("at most embedded.dram_bytes"),
            std::string::npos);
}

TEST(Config, SecretsAreRefusedAndNeverRepeated) {
  const std::string message = error_of(kOneMount + "    cache: {redis: {password: hunter2}}\n");
  EXPECT_NE(message.find("storage.agfs.cache.redis.password: secrets are not kept in this file"), std::string::npos);
  EXPECT_NE(message.find("password_env"), std::string::npos);
  EXPECT_EQ(message.find("hunter2"), std::string::npos);
}

TEST(Config, HostPathsAreRelativeToTheFile) {
  const auto config = parse_config("storage: {agfs: {mounts: [{path: /, type: localfs, local_dir: ../data}]}}",
                                   "/etc/ragfs/ragfs.yaml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->mounts[0].local_dir, "/etc/data");
  const auto logs = parse_config(kOneMount + "server: {access_log: logs/access.jsonl}\n", "/etc/ragfs/ragfs.yaml");
  ASSERT_TRUE(logs) << logs.error().message;
  EXPECT_EQ(logs->server.access_log, "/etc/ragfs/logs/access.jsonl");
  const auto stream = parse_config(kOneMount + "server: {access_log: \"-\"}\n", "/etc/ragfs/ragfs.yaml");
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_EQ(stream->server.access_log, "-") << "standard error, no file";
  ASSERT_EQ(::setenv("HOME", "/home/me", 1), 0);
  EXPECT_EQ(resolve_host_path("~/x/", "/etc/a"), "/home/me/x");
}

TEST(Config, UnreadableFilesSayWhy) {
  const auto missing = load_config("/nowhere/ragfs.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/nowhere/ragfs.yaml: cannot be read: No such file or directory");
  const auto directory = load_config("/");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().message, "/: cannot be read: Is a directory");
}

TEST(Config, ShownYamlReadsBackAsTheSameConfig) {
  const auto config =
      parse_config(kOneMount + "    cache: {bypass_globs: [\"/a \\\"b\\\\\\n\"], redis: {db: 2}}\n", "t.yaml");
  ASSERT_TRUE(config) << config.error().message;
  const std::string shown = config_as_yaml(*config);
  const auto again = parse_config(shown, "shown.yaml");
  ASSERT_TRUE(again) << again.error().message << "\n" << shown;
  EXPECT_TRUE(check_reload(*config, *again)) << shown;
  EXPECT_EQ(config_as_yaml(*again), shown);
}

TEST(Config, AReloadMayChangeTheLogAndNothingThatNeedsARestart) {
  const auto running = parse_config(kOneMount, "t.yaml");
  const auto louder = parse_config(kOneMount + "log: {level: debug}\n", "t.yaml");
  ASSERT_TRUE(running && louder);
  EXPECT_TRUE(check_reload(*running, *louder));
  const auto other = parse_config(kOneMount + "    cache: {provider: redis}\n", "t.yaml");
  ASSERT_TRUE(other);
  const auto refused = check_reload(*running, *other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "t.yaml:4: storage.agfs.cache.provider: embedded -> redis cannot change in a running process; restart");
  Config fewer = *running;
  fewer.mounts.clear();
  ASSERT_FALSE(check_reload(*running, fewer));
  EXPECT_NE(check_reload(*running, fewer).error().message.find("mounts[0].path: \"/\" -> absent"), std::string::npos);
}

TEST(Config, ForRootIsValidAndRevalidatesAfterASecond) {
  const Config config = Config::for_root("/srv/tree");
  ASSERT_TRUE(config.validate());
  EXPECT_EQ(config.mounts.at(0).path, "/");
  EXPECT_EQ(config.mounts.at(0).revalidate_ms, 1000);
  EXPECT_TRUE(config.cache.enabled);
  Config broken = config;
  broken.mounts[0].local_dir.clear();
  EXPECT_NE(broken.validate().error().message.find("storage.agfs.mounts[0].local_dir: is missing"), std::string::npos);
}

TEST(NearestWord, SuggestsOnlyWhatIsNear) {
  EXPECT_EQ(nearest_word("provdier", {"provider", "enabled"}), "provider");
  EXPECT_EQ(nearest_word("zzzzzzzz", {"provider", "enabled"}), "");
  EXPECT_EQ(nearest_word("", {"provider"}), "");
  EXPECT_EQ(nearest_word(std::string(100, 'a'), {"provider"}), "");
}

}  // namespace
}  // namespace ragfs
