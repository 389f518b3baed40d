// Every provider under many threads: values stay whole, close() ends everything, no more calls inside than allowed.
#include <fmt/format.h>

#include <atomic>
#include <latch>
#include <thread>

#include "ragfs/cache/guarded_provider.h"
#include "tests/contract/measuring_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

// A value that tells whether it is whole and whose it is.
std::string value_of(std::string_view key, int round) {
  std::string value = fmt::format("{} {} ", key, round);
  value.append(static_cast<size_t>(round * 37 % 5'000), static_cast<char>('a' + round % 26));
  return value;
}
bool is_a_value_of(std::string_view key, std::string_view seen) {
  const size_t space = seen.find(' ');
  if (space == std::string_view::npos || seen.substr(0, space) != key) return false;
  return seen == value_of(key, std::atoi(std::string(seen.substr(space + 1)).c_str()));
}

TEST_P(ProviderLoad, EightThreadsReadWholeValuesOfTheRightKeys) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 400;
  const std::vector<CacheKey> shared = keys_of(16, "file:shared:");
  std::atomic<int> wrong{0};
  std::atomic<int> failed{0};
  std::atomic<int> lost{0};
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      const std::string own = fmt::format("file:own:{}", id);
      for (int round = 0; round < kRounds; ++round) {
        const CacheKey& key = shared[static_cast<size_t>((round * 7 + id * 3) % 16)];
        const std::string value = value_of(key.text(), round);
        if (!provider().put(key, {"", value}, {}, soon())) ++failed;
        const GetResult got = provider().get(shared[static_cast<size_t>(round % 16)], soon());
        if (!got) ++failed;
        if (got && *got && !is_a_value_of(shared[static_cast<size_t>(round % 16)].text(), (*got)->str())) ++wrong;
        // What nobody else touches is as this thread left it, or on its way between two tiers.
        const std::string mine = value_of(own, round);
        if (!put(own, mine)) ++failed;
        const std::string seen = get(own);
        if (seen == "<miss>") ++lost;
        if (seen != "<miss>" && seen != mine) ++wrong;
        if (round % 10 == 0 && (!provider().erase(CacheKey(own), soon()) || get(own) != "<miss>")) ++wrong;
        if (round % 20 == 0) {
          const auto many = provider().get_many(shared, soon());
          for (size_t i = 0; i < many.size(); ++i) {
            if (!many[i]) ++failed;
            if (many[i] && *many[i] && !is_a_value_of(shared[i].text(), (*many[i])->str())) ++wrong;
          }
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_LE(lost, kThreads * kRounds / 100 * GetParam().misses_percent);
}

TEST_P(ProviderLoad, CloseWhileCallsRunEndsThemAndWhatFollowsIsUnavailable) {
  const std::vector<CacheKey> keys = keys_of(8);
  for (const CacheKey& key : keys) ASSERT_TRUE(put(key.text(), value_of(key.text(), 0)));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::latch started(4);
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&, id] {
      bool first = true;
      for (int round = 0; !stop; ++round) {
        const CacheKey& key = keys[static_cast<size_t>((round + id) % 8)];
        const std::string got = text(provider().get(key, soon()));
        if (got != "<miss>" && got != "<unavailable>" && !is_a_value_of(key.text(), got)) ++wrong;
        const Result<void> written = provider().put(key, {"", value_of(key.text(), round)}, {}, soon());
        if (!written && written.error().code != ErrorCode::unavailable) ++wrong;
        if (std::exchange(first, false)) started.count_down();
      }
    });
  }
  started.wait();
  EXPECT_EQ(kind(provider().close(soon())), "ok");
  stop = true;
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(get("file:contract:acc:0"), "<unavailable>") << "neither a value nor a miss";
  EXPECT_EQ(kind(put("file:a", "v")), "unavailable");
  EXPECT_EQ(kind(provider().erase(CacheKey("file:a"), soon())), "unavailable");
  EXPECT_EQ(kind(provider().health(soon())), "unavailable");
  const auto many = provider().get_many(keys, soon());
  ASSERT_EQ(many.size(), keys.size());
  for (const GetResult& one : many) EXPECT_EQ(text(one), "<unavailable>");
  const auto erased = provider().erase_many(keys, soon());
  ASSERT_EQ(erased.size(), keys.size());
  for (const Result<void>& one : erased) EXPECT_EQ(kind(one), "unavailable");
  EXPECT_EQ(kind(provider().close(soon())), "ok") << "idempotent";
}

TEST_P(ProviderLoad, NoMoreCallsAreInsideThanSdkConcurrencyAllows) {
  constexpr uint32_t kLimit = 3;
  constexpr int kThreads = 12;
  const auto measured = std::make_shared<MeasuringProvider>(harness_.provider, kLimit, 20'000);
  GuardedProvider guarded(measured, {.operation_timeout_ms = 20'000, .concurrency = kLimit});
  const std::vector<CacheKey> keys = keys_of(10);
  std::atomic<int> failed{0};
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < 50; ++round) {
        const CacheKey& key = keys[static_cast<size_t>((id + round) % 10)];
        if (!guarded.put(key, {"", "v"}, {}, Deadline::never())) ++failed;
        if (!guarded.get(key, Deadline::never())) ++failed;
        for (const GetResult& one : guarded.get_many(keys, Deadline::never())) failed += one ? 0 : 1;
        for (const Result<void>& one : guarded.erase_many(keys, Deadline::never())) failed += one ? 0 : 1;
        if (!guarded.erase(key, Deadline::never())) ++failed;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(measured->most_inside(), kLimit) << "the limit is reached, and never passed";
}

}  // namespace
}  // namespace ragfs::contract
