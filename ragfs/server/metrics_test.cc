// Every name of the RFC is exported; every series of the cache is on the page docs/metrics.md, and the other way round.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "ragfs/server/api.h"
#include "ragfs/server/dispatcher_fixture.h"

namespace ragfs::server {
namespace {

// The RFC's list, by the series that each name of it has here.
constexpr std::string_view kOfTheRfc[] = {"file_hit_total",
                                          "file_miss_total",
                                          "directory_hit_total",
                                          "directory_miss_total",
                                          "bypass_total",
                                          "stale_generation_total",
                                          "set_total",
                                          "fill_total",
                                          "set_failed_total",
                                          "delete_total",
                                          "delete_failed_total",
                                          "invalidation_total",
                                          "subtree_generation_bump_failed_total",
                                          "error_total",
                                          "bytes_from_cache_total",
                                          "bytes_from_backend_total",
                                          "get_latency_seconds",
                                          "set_latency_seconds",
                                          "delete_latency_seconds",
                                          "backend_read_latency_seconds",
                                          "backend_list_latency_seconds",
                                          "inflight_leader_total",
                                          "inflight_follower_total",
                                          "inflight_saved_total",
                                          "inflight_active",
                                          "inflight_wait_latency_seconds",
                                          "inflight_timeout_total",
                                          "inflight_aborted_total",
                                          "prefetch_triggered_total",
                                          "prefetch_hit_total",
                                          "prefetch_waste_total",
                                          "prefetch_dropped_total"};

class Metrics : public DispatcherFixture {
 protected:
  Metrics() : DispatcherFixture("/local") {}

  std::string read(std::string_view path) {
    const auto got = instance_->fs().read(Context(), *Path::parse(path), 0, 0);
    return got ? got->str() : std::string(kind_name(got.error().code));
  }
  std::string page() { return metrics_text(*services_); }
  // Families of series whose name begins with "ragfs_cache_".
  std::set<std::string> exported() {
    std::set<std::string> names;
    const std::string text = page();
    const std::regex type("# TYPE (ragfs_cache_[a-z_]+) ");
    for (auto it = std::sregex_iterator(text.begin(), text.end(), type); it != std::sregex_iterator(); ++it) {
      names.insert((*it)[1]);
    }
    return names;
  }
  // The value of a line that begins with `series`.
  double value(const std::string& series) {
    const std::string text = "\n" + page();
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
  }
};

TEST_F(Metrics, EveryNameOfTheRfcIsExported) {
  const std::set<std::string> names = exported();
  for (const std::string_view name : kOfTheRfc) {
    EXPECT_TRUE(names.contains("ragfs_cache_" + std::string(name))) << name;
  }
}

TEST_F(Metrics, ThePageNamesEverySeriesAndNoOther) {
  std::ifstream in(std::string(RAGFS_SOURCE_DIR) + "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::set<std::string> documented;
  const std::regex name("`(ragfs_cache_[a-z_]+[a-z])`");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator(); ++it) {
    documented.insert((*it)[1]);
  }
  std::set<std::string> shown = exported();
  std::erase_if(shown, [](const std::string& series) {
    return series.starts_with("ragfs_cache_provider_") && series != "ragfs_cache_provider_info" &&
           series != "ragfs_cache_provider_errors_total" && series != "ragfs_cache_provider_bypassed_total";
  });
  EXPECT_EQ(documented, shown);
}

TEST_F(Metrics, CountsAndTimesAreOfTheirMount) {
  ASSERT_TRUE(instance_->mount({.path = "/other", .type = "memfs"}));
  ASSERT_TRUE(instance_->fs().write(Context(), *Path::parse("/local/f"), "abcd", 0, WriteFlag::create));
  Context ask;
  ask.bypass_cache = true;
  ASSERT_TRUE(instance_->fs().read(ask, *Path::parse("/local/f"), 0, 0));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/local/f"), "abcd");
  EXPECT_EQ(read("/other/none"), "not_found");
  EXPECT_EQ(value("ragfs_cache_file_hit_total{provider=\"embedded\",mount=\"/local\"}"), 3);
  EXPECT_EQ(value("ragfs_cache_bytes_from_cache_total{provider=\"embedded\",mount=\"/local\"}"), 12);
  EXPECT_EQ(value("ragfs_cache_file_hit_total{provider=\"embedded\",mount=\"/other\"}"), 0);
  EXPECT_EQ(value("ragfs_cache_file_miss_total{provider=\"embedded\",mount=\"/other\"}"), 1);
  EXPECT_EQ(value("ragfs_cache_set_total{provider=\"embedded\"}"), 1);
  EXPECT_GT(value("ragfs_cache_invalidation_total{provider=\"embedded\"}"), 0);
  EXPECT_EQ(value("ragfs_cache_backend_read_latency_seconds_count{provider=\"embedded\",mount=\"/local\"}"), 1);
  EXPECT_EQ(value("ragfs_operations_total{mount=\"/local\",operation=\"read\"}"), 4);
  EXPECT_EQ(value("ragfs_operation_errors_total{mount=\"/other\",operation=\"read\"}"), 1);
  EXPECT_EQ(value("ragfs_operation_duration_seconds_count{mount=\"/local\",operation=\"write\"}"), 1);
  // What a mount counted is not lost with it.
  ASSERT_TRUE(instance_->unmount(*Path::parse("/local")));
  EXPECT_EQ(value("ragfs_cache_file_hit_total{provider=\"embedded\",mount=\"\"}"), 3);
}

// Buckets grow, the last one is the count: what Prometheus asks of a histogram.
TEST_F(Metrics, HistogramsAreCumulative) {
  ASSERT_TRUE(instance_->fs().write(Context(), *Path::parse("/local/f"), "abcd", 0, WriteFlag::create));
  const std::string text = page();
  const std::regex line(
      "ragfs_operation_duration_seconds_bucket\\{mount=\"/local\",operation=\"write\",le=\"([^\"]+)\"\\} "
      "([0-9.e+]+)");
  double last = 0;
  std::string bound;
  int buckets = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), line); it != std::sregex_iterator(); ++it, ++buckets) {
    EXPECT_GE(std::stod((*it)[2]), last);
    last = std::stod((*it)[2]);
    bound = (*it)[1];
  }
  EXPECT_GT(buckets, 10);
  EXPECT_EQ(bound, "+Inf");
  EXPECT_EQ(last, value("ragfs_operation_duration_seconds_count{mount=\"/local\",operation=\"write\"}"));
}

}  // namespace
}  // namespace ragfs::server
