#include "ragfs/providers/disabled/disabled_provider.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

TEST(DisabledProvider, EveryCallIsUnavailableAndNamesTheReason) {
  DisabledProvider provider("redis at start: connection refused");
  const CacheKey key("file:ns:acc:0");
  const Deadline never = Deadline::never();
  const GetResult got = provider.get(key, never);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::unavailable);
  EXPECT_NE(got.error().message.find("connection refused"), std::string::npos);
  EXPECT_EQ(provider.put(key, {"h", "p"}, {}, never).error().code, ErrorCode::unavailable);
  EXPECT_EQ(provider.erase(key, never).error().code, ErrorCode::unavailable);
  EXPECT_EQ(provider.put_atomic({}, never).error().code, ErrorCode::unavailable);
  EXPECT_EQ(provider.erase_if([](auto, auto) { return true; }, never).error().code, ErrorCode::unavailable);
  const std::vector<CacheKey> keys{key, key, key};
  const auto many = provider.get_many(keys, never);
  ASSERT_EQ(many.size(), 3U);
  for (const GetResult& one : many) EXPECT_EQ(one.error().code, ErrorCode::unavailable);
}

TEST(DisabledProvider, IsHealthyAndClosesTwice) {
  DisabledProvider provider;
  EXPECT_TRUE(provider.health(Deadline::never()));
  EXPECT_TRUE(provider.close(Deadline::never()));
  EXPECT_TRUE(provider.close(Deadline::never()));
}

}  // namespace
}  // namespace ragfs
