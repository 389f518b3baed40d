// OperationStats: counts, errors and latencies of file system operations.
//
// Counts and errors are exact and striped by thread: a count costs a plain load and store. Latencies of the
// operations that a cache answers in nanoseconds (read, stat, exists, read_dir and their like) are sampled, one in 64;
// the others are all timed. Not for: counts that something is decided by.
// Thread-safety: all methods may be called from any thread. A snapshot is not a moment: operations go on meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/latency_histogram.h"
#include "ragfs/base/thread_slot.h"

namespace ragfs {

enum class Operation : uint8_t {
  // sampled
  read,  // read_file too
  read_dir,
  stat,
  exists,
  version,
  // all timed
  create,
  mkdir,
  ensure_parent_dirs,
  remove,
  remove_all,
  write,
  compare_and_write,
  compare_and_remove,
  truncate,
  touch,
  chmod,
  read_internal_dir,
  resolve,
  rename,
  replace,
  copy,
  tree,
  glob,
  grep,
};

inline constexpr size_t kOperationCount = static_cast<size_t>(Operation::grep) + 1;
inline constexpr uint64_t kLatencySampling = 64;

// As RAGFS names them in its statistics: "read", "tree_dir", ...
std::string_view operation_name(Operation operation);
constexpr bool is_sampled(Operation operation) { return operation <= Operation::version; }

struct OperationSnapshot {
  Operation operation = Operation::read;
  uint64_t count = 0;     // exact
  uint64_t errors = 0;    // exact
  uint64_t timed = 0;     // how many of them the figures below are from
  uint64_t total_ns = 0;  // of all: where only some were timed, their average times count
  uint64_t min_ns = std::numeric_limits<uint64_t>::max();  // this when nothing was timed
  uint64_t max_ns = 0;
  uint64_t avg_ns = 0;
  std::array<uint64_t, kLatencyBuckets> buckets{};  // of the timed ones
};

class OperationStats {
 public:
  // Counts one more; true when this one's latency is to be recorded.
  bool begin(Operation operation) noexcept {
    const size_t slot = thread_slot();
    const uint64_t before = add_in_slot(stripes_[slot].counts[index(operation)], slot, 1);
    return !is_sampled(operation) || before % kLatencySampling == 0;
  }
  // Counts `more` that were made in one call, untimed.
  void add(Operation operation, uint64_t more) noexcept {
    const size_t slot = thread_slot();
    add_in_slot(stripes_[slot].counts[index(operation)], slot, more);
  }
  void failed(Operation operation, ErrorCode code) noexcept;
  void took(Operation operation, int64_t latency_ns) noexcept;

  OperationSnapshot snapshot(Operation operation) const;
  // In the order of Operation.
  std::vector<OperationSnapshot> snapshot() const;
  uint64_t errors(ErrorCode code) const noexcept;

 private:
  static constexpr size_t index(Operation operation) { return static_cast<size_t>(operation); }

  struct alignas(64) Stripe {
    std::array<std::atomic<uint64_t>, kOperationCount> counts{};
    std::array<std::atomic<uint64_t>, kOperationCount> failures{};
    std::array<std::atomic<uint64_t>, kErrorCodeCount> codes{};
  };
  // Not striped: on the hot operations one call in 64 comes here.
  struct alignas(64) Latencies {
    std::atomic<uint64_t> timed{0};
    std::atomic<uint64_t> total_ns{0};
    std::atomic<uint64_t> min_ns{std::numeric_limits<uint64_t>::max()};
    std::atomic<uint64_t> max_ns{0};
    std::array<std::atomic<uint64_t>, kLatencyBuckets> buckets{};
  };

  std::array<Stripe, kThreadSlots + 1> stripes_;
  std::array<Latencies, kOperationCount> latencies_;
};

}  // namespace ragfs
