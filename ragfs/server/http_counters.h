// HttpCounters: what the server counts of its own work, for /metrics.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ragfs::server {

struct HttpCounters {
  using Counter = std::atomic<uint64_t>;
  Counter connections_total{0};
  Counter connections_refused{0};  // past max_connections
  Counter requests_total{0};
  std::array<Counter, 6> by_class{};  // [2] = answers 2xx
  Counter answered_at_once{0};        // from memory, without a worker
  Counter malformed{0};               // refused by the parser
  Counter unauthorized{0};            // no token, or one that is not known
  Counter forbidden{0};               // a token that does not allow it
  Counter overloaded{0};              // 503 for a full queue or full buffers
  Counter header_timeouts{0};
  Counter idle_timeouts{0};
  Counter stalled{0};  // dropped while sending or taking
  Counter cut_off{0};  // answers that could not be completed
  Counter body_bytes_in{0};
  Counter body_bytes_out{0};
  Counter buffered_bytes{0};  // of request bodies, now
  Counter log_lines_lost{0};

  // Bucket i holds requests below 2^(i + 5) us (32 us, ... 16.8 s), the last one all above.
  static constexpr size_t kBuckets = 21;
  static constexpr uint64_t bound_us(size_t bucket) { return uint64_t{1} << (bucket + 5); }
  std::array<Counter, kBuckets> latency{};
  Counter latency_sum_us{0};

  void answered(unsigned status, int64_t took_ns) {
    const uint64_t us = took_ns < 0 ? 0 : static_cast<uint64_t>(took_ns) / 1000;
    by_class[std::min<size_t>(status / 100, 5)].fetch_add(1, std::memory_order_relaxed);
    const size_t bucket = static_cast<size_t>(std::bit_width(us >> 5));
    latency[std::min(bucket, kBuckets - 1)].fetch_add(1, std::memory_order_relaxed);
    latency_sum_us.fetch_add(us, std::memory_order_relaxed);
  }
};

}  // namespace ragfs::server
