#include "bench/policies.h"

#include <cstddef>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

namespace ragfs::bench {
namespace {

// One cache, whose policy is the rank of each object: the lowest goes first.
class Ranked {
 public:
  explicit Ranked(uint64_t budget_bytes) : budget_(budget_bytes) {}

  bool has(uint32_t object) const { return kept_.contains(object); }
  uint64_t rank_of(uint32_t object) const { return kept_.at(object).rank; }
  void drop(uint32_t object) {
    const auto found = kept_.find(object);
    if (found == kept_.end()) return;
    order_.erase({found->second.rank, object});
    used_ -= found->second.bytes;
    kept_.erase(found);
  }
  void keep(uint32_t object, uint32_t bytes, uint64_t rank) {
    drop(object);
    kept_[object] = {rank, bytes};
    order_.insert({rank, object});
    used_ += bytes;
    while (used_ > budget_) drop(order_.begin()->second);
  }

 private:
  struct Kept {
    uint64_t rank;
    uint32_t bytes;
  };
  const uint64_t budget_;
  uint64_t used_ = 0;
  std::unordered_map<uint32_t, Kept> kept_;
  std::set<std::pair<uint64_t, uint32_t>> order_;
};

template <typename Rank>
double hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes, const Rank& rank) {
  Ranked cache(budget_bytes);
  uint64_t gets = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (access.touch == Touch::drop) {
      cache.drop(access.object);
      continue;
    }
    const bool had = cache.has(access.object);
    if (access.touch == Touch::get) {
      ++gets;
      if (had) ++hits;
    }
    cache.keep(access.object, access.bytes, rank(i, had ? cache.rank_of(access.object) : 0));
  }
  return gets == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(gets);
}

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

// For each access, when its object is got next with nothing that replaces it between.
std::vector<uint64_t> next_gets(const std::vector<Access>& accesses) {
  std::vector<uint64_t> next(accesses.size(), kNever);
  std::unordered_map<uint32_t, uint64_t> coming;
  for (size_t i = accesses.size(); i-- > 0;) {
    const Access& access = accesses[i];
    const auto found = coming.find(access.object);
    if (found != coming.end()) next[i] = found->second;
    coming[access.object] = access.touch == Touch::get ? i : kNever;
  }
  return next;
}

}  // namespace

double lru_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes) {
  return hit_ratio(accesses, budget_bytes, [](size_t i, uint64_t) { return i; });
}

double lfu_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes) {
  // The count above, the time below: among equals the one that was not used for longest goes.
  constexpr unsigned kTimeBits = 40;
  return hit_ratio(accesses, budget_bytes,
                   [](size_t i, uint64_t before) { return ((before >> kTimeBits) + 1) << kTimeBits | i; });
}

double min_hit_ratio(const std::vector<Access>& accesses, uint64_t budget_bytes) {
  const std::vector<uint64_t> next = next_gets(accesses);
  return hit_ratio(accesses, budget_bytes, [&](size_t i, uint64_t) { return kNever - next[i]; });
}

}  // namespace ragfs::bench
