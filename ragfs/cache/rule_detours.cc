// What tests that take a rule out (rules.h) make the coherence domain do instead. Never reached in production.
#include <utility>

#include "ragfs/cache/coherence_domain.h"

namespace ragfs {

// Without kRecordsBeforeGet: the same look-up in the wrong order.
std::optional<CacheHit> CoherenceDomain::lookup_get_first(const Question& asked) {
  std::optional<CacheHit> hit = fetch(asked);
  if (!hit) return std::nullopt;
  const Observation seen = table_.observe_exactly(asked.at.trail(), asked.kind);
  if (seen.running() || hit->envelope.info.stamp < seen.newest()) return std::nullopt;
  return hit;
}

// Without kExpiryNotRearmed: a near copy that begins its time anew.
void CoherenceDomain::copy_rearmed(const CacheKey& key, const CacheHit& hit, PutOptions options) {
  EnvelopeInfo info = hit.envelope.info;
  info.filled_at_ns = now_ns();
  info.expires_at_ns = expiry_ns(info.filled_at_ns);
  options.ttl_ms = config_.default_ttl_ms;
  near_->put(key, {encode_envelope(info, hit.envelope.payload), hit.envelope.payload}, options, NearCounter::copies);
}

// Without kStatListingRecord.
std::optional<CacheHit> CoherenceDomain::lookup_unjudged(const CachePath& at, ObjectKind kind, Deadline deadline) {
  const CacheKey object_key = key(at, kind);
  return fetch({at, kind, object_key, deadline, source_at_hand(), nullptr});
}

}  // namespace ragfs
