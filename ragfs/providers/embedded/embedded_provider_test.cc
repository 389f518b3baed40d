#include "ragfs/providers/embedded/embedded_provider.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

constexpr Deadline kNever = Deadline::never();

std::unique_ptr<EmbeddedProvider> make_provider(const EmbeddedConfig& config = {}) {
  auto provider = EmbeddedProvider::create(config);
  EXPECT_TRUE(provider.has_value()) << (provider ? "" : provider.error().text());
  return std::move(provider.value());
}

TEST(EmbeddedProvider, AHitPinsTheStoredBytesAndTheirNote) {
  auto provider = make_provider();
  const CacheKey key("file:ns:acc:1");
  ASSERT_TRUE(provider->put(key, {"header", "payload"}, {}, kNever));
  const Bytes first = provider->get(key, kNever).value().value_or(Bytes());
  const Bytes second = provider->get(key, kNever).value().value_or(Bytes());
  EXPECT_EQ(first.view(), "headerpayload");
  EXPECT_EQ(first.data(), second.data());
  first.note()->store(17);
  EXPECT_EQ(second.note()->load(), 17U);
}

TEST(EmbeddedProvider, EachInstanceIsAnotherIncarnation) {
  auto one = make_provider();
  auto other = make_provider();
  EXPECT_EQ(one->incarnation(), one->incarnation());
  EXPECT_NE(one->incarnation(), other->incarnation());
}

TEST(EmbeddedProvider, BytesOutliveTheProvider) {
  auto provider = make_provider();
  ASSERT_TRUE(provider->put(CacheKey("k"), {"", "v"}, {}, kNever));
  const Bytes held = provider->get(CacheKey("k"), kNever).value().value_or(Bytes());
  ASSERT_TRUE(provider->close(kNever));
  provider.reset();
  EXPECT_EQ(held.view(), "v");
}

TEST(EmbeddedProvider, TheLargestValueItNamesIsTakenAndOneMoreIsNot) {
  auto provider = make_provider({.dram_bytes = 16 << 20, .max_object_bytes = 100'000});
  const size_t most = provider->capabilities().max_value_bytes;
  const CacheKey key(std::string(kMaxKeyBytes, 'k'));
  EXPECT_TRUE(provider->put(key, {"", std::string(most, 'v')}, {}, kNever));
  EXPECT_EQ(provider->put(key, {"", std::string(most + 1, 'v')}, {}, kNever).error().code, ErrorCode::too_large);
}

TEST(CaseE10, AWrongSizeIsRefusedByTheNameOfItsField) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1000}, uint64_t{1} << 60}) {
    const auto refused = EmbeddedProvider::create({.dram_bytes = bytes});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::config);
    EXPECT_NE(refused.error().message.find("dram_bytes"), std::string::npos);
  }
  EXPECT_EQ(EmbeddedProvider::create({.shards = 12}).error().code, ErrorCode::config);
}

TEST(EmbeddedProvider, MetricsFollowWhatHappens) {
  auto provider = make_provider();
  ASSERT_TRUE(provider->put(CacheKey("k"), {"", "v"}, {}, kNever));
  EXPECT_TRUE(provider->get(CacheKey("k"), kNever).has_value());
  EXPECT_TRUE(provider->get(CacheKey("absent"), kNever).has_value());
  double hits = -1;
  double misses = -1;
  double objects = -1;
  for (const ProviderMetric& metric : provider->metrics()) {
    if (metric.name == "dram_hits_total") hits = metric.value;
    if (metric.name == "dram_misses_total") misses = metric.value;
    if (metric.name == "dram_objects") objects = metric.value;
  }
  EXPECT_EQ(hits, 1);
  EXPECT_EQ(misses, 1);
  EXPECT_EQ(objects, 1);
}

}  // namespace
}  // namespace ragfs
