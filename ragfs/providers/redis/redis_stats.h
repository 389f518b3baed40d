// RedisStats: what the redis provider counts.
//
// Latencies are kept as log2 buckets, so percentiles are upper bounds within a factor of two.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/provider.h"
#include "ragfs/providers/redis/reply_error.h"

namespace ragfs::redis {

enum class Command : uint8_t { get, put, erase, get_many, put_many, erase_many, put_atomic, purge, health };
inline constexpr size_t kCommandCount = static_cast<size_t>(Command::health) + 1;
inline constexpr std::array<std::string_view, kCommandCount> kCommandNames = {
    "get", "put", "erase", "get_many", "put_many", "erase_many", "put_atomic", "purge", "health"};

enum class Event : uint8_t {
  connects,                 // connections opened
  connect_failures,         // attempts that failed
  connections_lost,         // closed because of an error or a timeout
  connections_idle_closed,  // found closed by the server
  pool_waits,               // calls that had to wait for a connection
  pool_wait_ns,
  repeated_reads,  // reads sent again after a connection was lost
  foreign_values,  // answers that belong to another key or call
  redirects_followed,
  topology_refreshes,
  topology_failures,
  slot_takeovers,    // slots whose owner changed without its word
  identity_changes,  // servers that turned out to be another
  replica_reads,
};
inline constexpr size_t kEventCount = static_cast<size_t>(Event::replica_reads) + 1;
inline constexpr std::array<std::string_view, kEventCount> kEventNames = {
    "connects_total",           "connect_failures_total",   "connections_lost_total",  "connections_idle_closed_total",
    "pool_waits_total",         "pool_wait_ns_total",       "repeated_reads_total",    "foreign_values_total",
    "redirects_followed_total", "topology_refreshes_total", "topology_failures_total", "slot_takeovers_total",
    "identity_changes_total",   "replica_reads_total"};

class RedisStats {
 public:
  void add(Event event, uint64_t by = 1) { events_[static_cast<size_t>(event)].fetch_add(by, kRelaxed); }
  uint64_t read(Event event) const { return events_[static_cast<size_t>(event)].load(kRelaxed); }
  void add(ReplyError error) { replies_[static_cast<size_t>(error)].fetch_add(1, kRelaxed); }
  uint64_t read(ReplyError error) const { return replies_[static_cast<size_t>(error)].load(kRelaxed); }
  // A call that took `ns` and ended with `error` (nullptr: well).
  void ended(Command command, int64_t ns, const Error* error);
  // What a server said of itself; `run_id` tells servers, and lives of one server, apart. The metrics are the sums of
  // what each said last.
  void server_reports(const std::string& run_id, uint64_t evicted, uint64_t expired);
  void append_to(std::vector<ProviderMetric>& out) const;

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  static constexpr size_t kBuckets = 40;  // of nanoseconds
  struct Calls {
    std::atomic<uint64_t> count{0};
    std::atomic<uint64_t> timeouts{0};
    std::atomic<uint64_t> failures{0};  // timeouts included
    std::atomic<uint64_t> ns{0};
    std::array<std::atomic<uint64_t>, kBuckets> buckets{};
  };
  static double percentile_us(const Calls& calls, double share);

  std::array<Calls, kCommandCount> calls_;
  std::array<std::atomic<uint64_t>, kEventCount> events_{};
  std::array<std::atomic<uint64_t>, kReplyErrorCount> replies_{};
  struct Removals {
    uint64_t evicted = 0;
    uint64_t expired = 0;
  };
  static constexpr size_t kMostServers = 256;
  mutable Mutex mutex_;
  std::map<std::string, Removals> removals_ RAGFS_GUARDED_BY(mutex_);  // by run_id
};

}  // namespace ragfs::redis
