#include "ragfs/providers/redis/redis_stats.h"

#include <fmt/format.h>

#include <algorithm>

namespace ragfs::redis {

void RedisStats::ended(Command command, int64_t ns, const Error* error) {
  Calls& calls = calls_[static_cast<size_t>(command)];
  const uint64_t took = static_cast<uint64_t>(std::max<int64_t>(ns, 1));
  calls.count.fetch_add(1, kRelaxed);
  calls.ns.fetch_add(took, kRelaxed);
  calls.buckets[std::min<size_t>(static_cast<size_t>(std::bit_width(took)), kBuckets - 1)].fetch_add(1, kRelaxed);
  if (error == nullptr) return;
  calls.failures.fetch_add(1, kRelaxed);
  if (error->code == ErrorCode::timeout) calls.timeouts.fetch_add(1, kRelaxed);
}

void RedisStats::server_reports(const std::string& run_id, uint64_t evicted, uint64_t expired) {
  if (run_id.empty()) return;
  MutexLock lock(mutex_);
  if (removals_.size() >= kMostServers && !removals_.contains(run_id)) removals_.erase(removals_.begin());
  removals_[run_id] = {evicted, expired};
}

double RedisStats::percentile_us(const Calls& calls, double share) {
  uint64_t all = 0;
  for (const auto& bucket : calls.buckets) all += bucket.load(kRelaxed);
  if (all == 0) return 0;
  const auto wanted = static_cast<uint64_t>(static_cast<double>(all) * share);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += calls.buckets[i].load(kRelaxed);
    if (seen > wanted) return static_cast<double>(uint64_t{1} << i) / 1e3;
  }
  return static_cast<double>(uint64_t{1} << (kBuckets - 1)) / 1e3;
}

void RedisStats::append_to(std::vector<ProviderMetric>& out) const {
  for (size_t i = 0; i < kCommandCount; ++i) {
    const Calls& calls = calls_[i];
    const std::string_view name = kCommandNames[i];
    out.push_back({fmt::format("{}_calls_total", name), static_cast<double>(calls.count.load(kRelaxed))});
    out.push_back({fmt::format("{}_failures_total", name), static_cast<double>(calls.failures.load(kRelaxed))});
    out.push_back({fmt::format("{}_timeouts_total", name), static_cast<double>(calls.timeouts.load(kRelaxed))});
    out.push_back({fmt::format("{}_ns_total", name), static_cast<double>(calls.ns.load(kRelaxed))});
    out.push_back({fmt::format("{}_p50_us", name), percentile_us(calls, 0.5)});
    out.push_back({fmt::format("{}_p99_us", name), percentile_us(calls, 0.99)});
  }
  for (size_t i = 0; i < kEventCount; ++i) {
    out.push_back({std::string(kEventNames[i]), static_cast<double>(events_[i].load(kRelaxed))});
  }
  for (size_t i = 0; i < kReplyErrorCount; ++i) {
    out.push_back({fmt::format("replies_{}_total", reply_error_name(static_cast<ReplyError>(i))),
                   static_cast<double>(replies_[i].load(kRelaxed))});
  }
  Removals all;
  {
    MutexLock lock(mutex_);
    for (const auto& [run_id, of_one] : removals_) {
      all.evicted += of_one.evicted;
      all.expired += of_one.expired;
    }
  }
  out.push_back({"server_evicted_keys", static_cast<double>(all.evicted)});
  out.push_back({"server_expired_keys", static_cast<double>(all.expired)});
}

}  // namespace ragfs::redis
