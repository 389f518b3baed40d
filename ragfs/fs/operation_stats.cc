#include "ragfs/fs/operation_stats.h"

#include <algorithm>

namespace ragfs {
namespace {

constexpr std::array<std::string_view, kOperationCount> kNames = {
    "read",
    "read_dir",
    "stat",
    "exists",
    "version",
    "create",
    "mkdir",
    "ensure_parent_dirs",
    "remove",
    "remove_all",
    "write",
    "compare_and_write",
    "compare_and_remove",
    "truncate",
    "touch",
    "chmod",
    "read_internal_dir",
    "resolve",
    "rename",
    "replace",
    "copy",
    "tree_dir",
    "glob_dir",
    "grep",
};
static_assert(!kNames.back().empty(), "a name for every Operation");

}  // namespace

std::string_view operation_name(Operation operation) { return kNames[static_cast<size_t>(operation)]; }

void OperationStats::failed(Operation operation, ErrorCode code) noexcept {
  const size_t slot = thread_slot();
  add_in_slot(stripes_[slot].failures[index(operation)], slot, 1);
  add_in_slot(stripes_[slot].codes[static_cast<size_t>(code)], slot, 1);
}

void OperationStats::took(Operation operation, int64_t latency_ns) noexcept {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(latency_ns, 0));
  Latencies& of = latencies_[index(operation)];
  of.timed.fetch_add(1, std::memory_order_relaxed);
  of.total_ns.fetch_add(value, std::memory_order_relaxed);
  of.buckets[latency_bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  uint64_t seen = of.min_ns.load(std::memory_order_relaxed);
  while (value < seen && !of.min_ns.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  seen = of.max_ns.load(std::memory_order_relaxed);
  while (value > seen && !of.max_ns.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

OperationSnapshot OperationStats::snapshot(Operation operation) const {
  OperationSnapshot result;
  result.operation = operation;
  for (const Stripe& stripe : stripes_) {
    result.count += stripe.counts[index(operation)].load(std::memory_order_relaxed);
    result.errors += stripe.failures[index(operation)].load(std::memory_order_relaxed);
  }
  const Latencies& of = latencies_[index(operation)];
  result.timed = of.timed.load(std::memory_order_relaxed);
  result.min_ns = of.min_ns.load(std::memory_order_relaxed);
  result.max_ns = of.max_ns.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kLatencyBuckets; ++i) result.buckets[i] = of.buckets[i].load(std::memory_order_relaxed);
  if (result.timed == 0) return result;
  const uint64_t timed_total_ns = of.total_ns.load(std::memory_order_relaxed);
  result.avg_ns = timed_total_ns / result.timed;
  result.total_ns = is_sampled(operation) ? result.avg_ns * result.count : timed_total_ns;
  return result;
}

std::vector<OperationSnapshot> OperationStats::snapshot() const {
  std::vector<OperationSnapshot> all;
  for (size_t i = 0; i < kOperationCount; ++i) all.push_back(snapshot(static_cast<Operation>(i)));
  return all;
}

uint64_t OperationStats::errors(ErrorCode code) const noexcept {
  uint64_t sum = 0;
  for (const Stripe& stripe : stripes_) sum += stripe.codes[static_cast<size_t>(code)].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace ragfs
