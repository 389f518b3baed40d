// Every provider while its engine fails: an error is an error and no miss, calls end by their deadline, the cache above
// answers as if it were not there, and all is well again afterwards.
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/cache/cached_file_system.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

constexpr int64_t kShort_ms = 100;
constexpr int64_t kSlack_ms = 5'000;  // what a busy machine may add

// A failure that says "the engine could not be asked", and neither a value, a miss nor the caller's fault.
::testing::AssertionResult failed(const auto& result) {
  if (result.has_value()) return ::testing::AssertionFailure() << "a success or a miss";
  const ErrorCode code = result.error().code;
  if (code == ErrorCode::unavailable || code == ErrorCode::timeout || code == ErrorCode::internal ||
      code == ErrorCode::invalid_data) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << result.error().text();
}

// Until the engine is back, or the wait is over.
bool wait_until_healthy(CacheProvider& provider) {
  const Deadline until = Deadline::in_ms(20'000);
  while (!until.expired()) {
    if (provider.health(Deadline::in_ms(1'000))) return true;
  }
  return false;
}

TEST_P(ProviderFaults, EveryCallFailsInTimeAndNoneIsAMissOrASuccess) {
  const std::vector<CacheKey> keys{CacheKey("file:there"), CacheKey("file:absent"), CacheKey("file:there")};
  ASSERT_TRUE(put("file:there", "v"));
  harness_.set_fault(GetParam().fault);
  const auto in_time = [](std::string_view what, const std::function<void()>& call) {
    const int64_t began_ns = Clock::system().monotonic_ns();
    call();
    EXPECT_LT((Clock::system().monotonic_ns() - began_ns) / 1'000'000, kShort_ms + kSlack_ms) << what;
  };
  in_time("get", [&] { EXPECT_TRUE(failed(provider().get(keys[0], Deadline::in_ms(kShort_ms)))); });
  in_time("get of an absent key", [&] { EXPECT_TRUE(failed(provider().get(keys[1], Deadline::in_ms(kShort_ms)))); });
  in_time("put", [&] { EXPECT_TRUE(failed(provider().put(keys[0], {"", "w"}, {}, Deadline::in_ms(kShort_ms)))); });
  in_time("erase", [&] { EXPECT_TRUE(failed(provider().erase(keys[0], Deadline::in_ms(kShort_ms)))); });
  in_time("get_many", [&] {
    const auto results = provider().get_many(keys, Deadline::in_ms(kShort_ms));
    EXPECT_EQ(results.size(), keys.size());
    for (const GetResult& one : results) EXPECT_TRUE(failed(one));
  });
  in_time("put_many", [&] {
    const std::vector<PutItem> items{{keys[0], {"", "w"}, {}}, {keys[1], {"", "w"}, {}}};
    const auto results = provider().put_many(items, Deadline::in_ms(kShort_ms));
    EXPECT_EQ(results.size(), items.size());
    for (const Result<void>& one : results) EXPECT_TRUE(failed(one));
  });
  in_time("erase_many", [&] {
    const auto results = provider().erase_many(keys, Deadline::in_ms(kShort_ms));
    EXPECT_EQ(results.size(), keys.size());
    for (const Result<void>& one : results) EXPECT_TRUE(failed(one));
  });
  if (can().atomic_put > 0) {
    const std::vector<PutItem> items{{keys[0], {"", "w"}, {}}};
    in_time("put_atomic", [&] { EXPECT_TRUE(failed(provider().put_atomic(items, Deadline::in_ms(kShort_ms)))); });
  }
  in_time("health", [&] { EXPECT_TRUE(failed(provider().health(Deadline::in_ms(kShort_ms)))); });
}

TEST_P(ProviderFaults, ItWorksAgainWhenTheEngineDoes) {
  ASSERT_TRUE(put("file:before", "v"));
  harness_.set_fault(GetParam().fault);
  EXPECT_TRUE(failed(provider().get(CacheKey("file:before"), Deadline::in_ms(kShort_ms))));
  harness_.set_fault(EngineFault::none);
  ASSERT_TRUE(wait_until_healthy(provider()));
  ASSERT_EQ(kind(put("file:after", "w")), "ok");
  EXPECT_EQ(get("file:after"), "w");
  const std::string before = get("file:before");
  EXPECT_TRUE(before == "v" || before == "<miss>") << before;
}

TEST_P(ProviderFaults, TheCacheAboveItAnswersFromTheBackend) {
  const std::shared_ptr<FileSystem> backend = MemFileSystem::open({}).value();
  CoherenceConfig config;
  config.guard.operation_timeout_ms = kShort_ms;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 10;
  config.retry_first_ms = 1;
  config.retry_most_ms = 10;
  const auto domain = std::make_shared<CoherenceDomain>(config, harness_.provider);
  CachedFileSystem cached(backend, domain, CachedMountConfig{});
  const Context ctx;
  const auto path = [](std::string_view name) { return PathView::from_normal(name); };
  const auto write = [&](std::string_view name, std::string_view data) {
    return cached.write(ctx, path(name), data, 0, WriteFlag::create).has_value();
  };
  const auto read = [&](std::string_view name) {
    const Result<Bytes> got = cached.read(ctx, path(name), 0, 0);
    return got ? got->str() : "<" + std::string(kind_name(got.error().code)) + ">";
  };
  ASSERT_TRUE(write("/f", "one") && write("/g", "gone soon"));
  EXPECT_EQ(read("/f") + read("/g"), "onegone soon");
  harness_.set_fault(GetParam().fault);
  EXPECT_EQ(read("/f"), "one");
  EXPECT_EQ(read("/absent"), "<not_found>");
  EXPECT_TRUE(write("/f", "two"));
  EXPECT_TRUE(cached.remove(ctx, path("/g")));
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(read("/g"), "<not_found>");
  harness_.set_fault(EngineFault::none);
  ASSERT_TRUE(wait_until_healthy(provider()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read("/f"), "two");
    EXPECT_EQ(read("/g"), "<not_found>");
  }
  EXPECT_TRUE(domain->settler().drain(soon())) << "the erases that failed are made good";
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(read("/g"), "<not_found>");
}

}  // namespace
}  // namespace ragfs::contract
