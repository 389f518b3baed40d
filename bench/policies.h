// Policies: the hit ratios that LRU, LFU and Belady's MIN reach on a list of object accesses.
//
// For: bench_trace, as peers of the real cache. Each is a cache of a byte budget over objects of different sizes. MIN
// knows the future: it evicts what is used again last, and does not take in what is used later than everything it has
// (L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", 1966; for sizes that differ it is
// a bound in practice, not in theory). Not for: timing. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace ragfs::bench {

enum class Touch : uint8_t { get, put, drop };
struct Access {
  uint32_t object = 0;
  uint32_t bytes = 0;
  Touch touch = Touch::get;
};

// Hits by gets.
double lru_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes);
double lfu_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes);
double min_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes);

}  // namespace ragfs::bench
