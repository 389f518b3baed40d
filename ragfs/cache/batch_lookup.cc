// CoherenceDomain::lookup_many(): the rules of lookup(), for many paths and one round trip.
//
// All records are looked up before the one get_many: what holds for a single get (look up first, then get) holds for
// each key of the batch. Those that only a shared bucket refused are looked up exactly and got again, all in one more.
#include <numeric>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/cache/coherence_domain.h"
#include "ragfs/cache/running_copy.h"

namespace ragfs {

std::vector<CoherenceDomain::Found> CoherenceDomain::lookup_many(std::span<const Wanted> wanted, Deadline deadline,
                                                                 NearCopies copies) {
  std::vector<Found> found(wanted.size());
  std::vector<size_t> left(wanted.size());
  std::iota(left.begin(), left.end(), size_t{0});
  RunningCopy copy(copies_, *settler_);
  // What is near costs no round trip.
  if (near_ && near_->is_open()) {
    if (copies == NearCopies::yes) copy.begin();
    std::erase_if(left, [&](size_t i) {
      const auto& [at, kind] = wanted[i];
      if (at->backend->use.shared) return false;
      const CacheKey object_key = key(*at, kind);
      found[i].hit = lookup_at(Question{*at, kind, object_key, deadline, Source::near, nullptr});
      if (found[i].hit) near_->count(NearCounter::hits);
      return found[i].hit.has_value();
    });
  }
  for (const bool exactly : {false, true}) {
    if (left.empty()) break;
    std::vector<Observation> seen;
    std::vector<CacheKey> keys;
    seen.reserve(left.size());
    keys.reserve(left.size());
    for (const size_t i : left) {
      const auto& [at, kind] = wanted[i];
      seen.push_back(exactly ? table_.observe_exactly(at->trail(), kind) : table_.observe(at->trail(), kind));
      keys.push_back(key(*at, kind));
    }
    const uint64_t epoch_before = epoch();
    RAGFS_PAUSE_POINT("lookup_many.before_get");
    std::vector<GetResult> got = provider_.get_many(keys, deadline);
    RAGFS_PAUSE_POINT("lookup_many.after_get");
    std::vector<size_t> again;
    for (size_t k = 0; k < left.size(); ++k) {
      if (!got[k] || !got[k]->has_value()) continue;
      const auto& [at, kind] = wanted[left[k]];
      Found& one = found[left[k]];
      one.hit = judge(Question{*at, kind, keys[k], deadline, Source::provider, &one.suspect}, std::move(**got[k]),
                      epoch_before);
      if (!one.hit) continue;
      if (passes(seen[k], *one.hit)) {
        one.copied = copy.runs() && !at->backend->use.shared;
        if (one.copied) copy_near(keys[k], kind, *one.hit);
        continue;
      }
      const uint64_t stamp = one.hit->envelope.info.stamp;
      one.hit.reset();
      if (seen[k].exact) {
        count_refusal(seen[k], stamp);
      } else {
        again.push_back(left[k]);
      }
    }
    left = std::move(again);
  }
  return found;
}

}  // namespace ragfs
