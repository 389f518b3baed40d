// CleanMarker: the object `clean:{namespace}:{life}`, written by an orderly close: what the next life must know so that
// the epoch can go on.
//
// It is a promise: the life that wrote it changes no backend any more without moving the witness first. At most 1 MiB;
// what does not fit is not written, and the next start is cold. Format: docs/formats.md, "Records of lives".
// Thread-safety: pure functions over values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/cache/domain_state.h"
#include "ragfs/cache/key.h"

namespace ragfs {

inline constexpr size_t kMaxMarkerBytes = 1 << 20;
// To be raised whenever a field, or the way PathTrail makes the ids of records, changes.
inline constexpr uint8_t kCleanMarkerVersion = 2;

struct CleanMarker {
  uint64_t life = 0;
  std::string incarnation;  // of the provider, all through the life
  DomainState state;
  friend bool operator==(const CleanMarker&, const CleanMarker&) = default;
};

// Named by its life: one key for all lives could be taken for a later one's.
CacheKey clean_marker_key(std::string_view encoded_namespace, uint64_t life);
// Nothing when it is larger than kMaxMarkerBytes.
std::optional<std::string> encode_clean_marker(const CleanMarker& marker);
// Nothing for whatever is not an intact marker.
std::optional<CleanMarker> decode_clean_marker(std::string_view text);

}  // namespace ragfs
