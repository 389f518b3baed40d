// The property on the real code: threads mutate and read through the cache over a provider and a backend that lose,
// delay, fail and late-land calls; every answer must be what the backend held while the call ran. 1,000,000 operations
// over all settings. A failure prints its seed; RAGFS_STRESS_SEED repeats it.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <random>

#include "ragfs/cli/stress/runner.h"

namespace ragfs::stress {

void PrintTo(const StressSetting& setting, std::ostream* out) { *out << setting.name; }

namespace {

constexpr uint64_t kOperations = 1'000'000;
constexpr uint64_t kSanitizedOperations = 100'000;
constexpr uint64_t kFullFactor = 10;

uint64_t seed_of_run() {
  const char* given = std::getenv("RAGFS_STRESS_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

uint64_t operations_per_setting() {
  const uint64_t all = std::getenv("RAGFS_TEST_SANITIZER") != nullptr ? kSanitizedOperations : kOperations;
  const uint64_t factor = std::getenv("RAGFS_TEST_FULL") != nullptr ? kFullFactor : 1;
  return all * factor / standard_settings().size();
}

class RandomizedCoherence : public ::testing::TestWithParam<StressSetting> {};

TEST_P(RandomizedCoherence, EveryAnswerIsWhatTheBackendHeld) {
  StressConfig config;
  config.seed = seed_of_run();
  config.operations = operations_per_setting();
  const Result<StressReport> report = run_stress(GetParam(), config);
  ASSERT_TRUE(report) << report.error().text();
  RecordProperty("seed", std::to_string(config.seed));
  EXPECT_TRUE(report->passed()) << report->text();
  EXPECT_GT(report->hits, report->operations / 20)
      << report->text() << ": the cache hardly answers, so little is tested";
  if (GetParam().provider_faults.sum() > 0) {
    EXPECT_GT(report->provider_faults, report->operations / 100) << report->text();
    EXPECT_GT(report->landed_late, 0U) << report->text();
  }
  if (GetParam().domain.prefetch.enabled) {
    EXPECT_GT(report->read_ahead, report->operations / 1'000) << report->text();
  }
  fmt::print("{}\n", report->text());
}

INSTANTIATE_TEST_SUITE_P(AllSettings, RandomizedCoherence, ::testing::ValuesIn(standard_settings()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ragfs::stress
