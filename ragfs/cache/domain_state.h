// DomainState: what one life of a coherence domain hands to the next, so that the epoch can go on.
//
// The domain fills it at an orderly close (CoherenceDomain::state()) and is built from it at a warm start; the clean
// marker (lives/clean_marker.h) carries it through the provider. Times are on the domain's now_ns() clock.
// Not for: the objects themselves. Thread-safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace ragfs {

// A record of the mutation table that was not settled.
struct RecordSnapshot {
  uint64_t id = 0;                  // of the path, seeded with DomainState::seed
  uint64_t value = 0;               // clock of its last mutation
  int64_t marked_until_ns = 0;      // a put of unknown outcome may land until then; 0 = not marked, INT64_MAX = no end
  std::vector<uint64_t> ancestors;  // where it may fold, outermost first
  friend bool operator==(const RecordSnapshot&, const RecordSnapshot&) = default;
};

// A backend identity that was cached all through the life: its objects stay valid.
struct IdentityTerm {
  uint64_t identity_hash = 0;
  uint64_t term = 0;  // its objects carry the epoch XOR this
  friend bool operator==(const IdentityTerm&, const IdentityTerm&) = default;
};

struct DomainState {
  uint64_t epoch = 0;
  uint64_t clock = 0;        // of mutations; the next life goes on from here
  uint64_t seed = 0;         // of the ids of paths
  int64_t closed_at_ns = 0;  // a wall clock that is behind this at the start has stepped back
  std::vector<IdentityTerm> identities;
  std::vector<RecordSnapshot> paths;
  std::vector<RecordSnapshot> subtrees;
  friend bool operator==(const DomainState&, const DomainState&) = default;
};

}  // namespace ragfs
