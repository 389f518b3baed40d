// PathTrail: the ids of a path and of all its ancestors, computed in one pass over its text.
//
// For: looking a path and everything above it up in the mutation table without hashing each prefix again: the id of
// each of the first sixteen is the hash of its path's text, that of a deeper one the hash of its name seeded with its
// parent's id (so that the work stays linear). Ids are seeded per process (an attacker cannot build collisions) and per
// backend identity. Not for: cache keys, which must be the same in the next process (KeySpace). Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ragfs/base/hash.h"
#include "ragfs/base/path.h"

namespace ragfs {

class PathTrail {
 public:
  PathTrail(uint64_t root_id, PathView path);

  // The id of the ancestor of `path` at `depth`, or of `path` itself when it is not that deep: one hash.
  // `depth` must be below 16.
  static uint64_t id_at(uint64_t root_id, PathView path, size_t depth);

  // Number of ids: depth + 1. Index 0 is the root, size() - 1 the path itself.
  size_t size() const noexcept { return size_; }
  uint64_t operator[](size_t index) const noexcept { return ids()[index]; }
  uint64_t self() const noexcept { return ids()[size_ - 1]; }
  const uint64_t* ids() const noexcept { return spilled_.empty() ? inline_.data() : spilled_.data(); }
  // The hash of the path's whole text, however deep it is; the same as text_id(root_id, path).
  uint64_t text_id() const noexcept { return text_id_; }
  static uint64_t text_id(uint64_t root_id, PathView path) { return hash64(path.text(), root_id); }

 private:
  static constexpr size_t kInlineIds = 16;  // deeper paths take one allocation

  size_t size_ = 1;
  uint64_t text_id_ = 0;
  std::array<uint64_t, kInlineIds> inline_;  // not zeroed: a trail is made on every hit
  std::vector<uint64_t> spilled_;
};

}  // namespace ragfs
