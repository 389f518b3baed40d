#include "ragfs/cache/near_tier.h"

#include <array>
#include <cassert>
#include <string>
#include <utility>

namespace ragfs {
namespace {

constexpr std::array<std::string_view, kNearCounterCount> kNames = {
    "near_hits_total", "near_misses_total",   "near_refused_total", "near_copies_total",
    "near_puts_total", "near_rejected_total", "near_erases_total",  "near_clears_total"};

}  // namespace

NearTier::NearTier(std::shared_ptr<CacheProvider> memory) : memory_(std::move(memory)) {
  assert(memory_->capabilities().zero_copy && memory_->capabilities().by_hash);
}

std::optional<Bytes> NearTier::get(const CacheKey& key) {
  if (!is_open()) return std::nullopt;
  GetResult got = memory_->get(key, Deadline::never());
  if (got && got->has_value()) return *std::move(got);
  count(NearCounter::misses);
  return std::nullopt;
}

void NearTier::put(const CacheKey& key, const ValueParts& value, const PutOptions& options, NearCounter why) {
  if (!is_open()) return;
  const bool stored = memory_->put(key, value, options, Deadline::never()).has_value();
  count(stored ? why : NearCounter::rejected);
}

void NearTier::erase(const CacheKey& key) {
  count(NearCounter::erases);
  (void)memory_->erase(key, Deadline::never());  // memory does not fail
}

void NearTier::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered) {
  (void)memory_->erase_if(covered, Deadline::never());
}

void NearTier::clear() {
  count(NearCounter::clears);
  erase_if([](std::string_view, std::string_view) { return true; });
}

std::vector<ProviderMetric> NearTier::metrics() const {
  std::vector<ProviderMetric> all;
  for (size_t i = 0; i < kNearCounterCount; ++i) {
    all.push_back({std::string(kNames[i]), static_cast<double>(counters_.read(i))});
  }
  // The memory's own figures, but those that count what is counted here.
  constexpr std::string_view kMemory = "dram_";
  for (const ProviderMetric& metric : memory_->metrics()) {
    if (!metric.name.starts_with(kMemory)) continue;
    const std::string name = metric.name.substr(kMemory.size());
    if (name == "hits_total" || name == "misses_total" || name == "erases_total") continue;
    all.push_back({"near_" + name, metric.value, metric.labels});
  }
  return all;
}

}  // namespace ragfs
