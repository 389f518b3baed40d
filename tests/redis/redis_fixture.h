// What the tests of the redis provider share: a provider for a server, keys, values, a wait with an end.
// Thread-safety: functions over values; what they are given decides.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ragfs/providers/redis/redis_provider.h"
#include "tests/redis/redis_server.h"

namespace ragfs::redis_test {

using redis::Endpoint;
using redis::RedisConfig;
using redis::RedisProvider;

inline Deadline soon() { return Deadline::in_ms(5'000); }

inline RedisConfig config_for(const std::string& endpoint) {
  RedisConfig config;
  config.endpoints = {*Endpoint::parse(endpoint)};
  config.key_prefix = "t";
  config.connect_timeout_ms = 2'000;
  return config;
}

inline std::unique_ptr<RedisProvider> provider_for(RedisConfig config) {
  auto made = RedisProvider::create(std::move(config));
  EXPECT_TRUE(made) << made.error().text();
  return *std::move(made);
}

inline CacheKey key_of(int i) { return CacheKey("file:n:a:" + std::to_string(i)); }
inline std::string value_of(int i) {
  return "value " + std::to_string(i) + std::string(static_cast<size_t>(i % 50), 'x');
}

inline Result<void> put(CacheProvider& provider, int i, Deadline deadline = soon()) {
  const std::string value = value_of(i);
  return provider.put(key_of(i), {.header = "", .payload = value}, {}, deadline);
}

// What a get gave, as text.
inline std::string shown(const GetResult& got) {
  if (!got) return "error: " + got.error().text();
  return got->has_value() ? (*got)->str() : "(absent)";
}

// Other processes change their state when they like: asked again and again, for a minute at most.
inline bool eventually(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace ragfs::redis_test
