// EpochPointer: the object `epoch:{namespace}`, which says which epoch the provider's objects belong to, and which life
// wrote that last.
//
// Format: docs/formats.md, "Records of lives". Not for: deciding what follows from it (Life does).
// Thread-safety: pure functions over values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/cache/key.h"

namespace ragfs {

struct EpochPointer {
  uint64_t life = 0;
  uint64_t epoch = 0;
  int64_t written_at_ns = 0;  // wall clock of the writer
  std::string writer;         // for the operator: "pid 4711 on host"
  friend bool operator==(const EpochPointer&, const EpochPointer&) = default;
};

CacheKey epoch_pointer_key(std::string_view encoded_namespace);
std::string encode_epoch_pointer(const EpochPointer& pointer);
// Nothing for whatever is not an intact pointer of a life.
std::optional<EpochPointer> decode_epoch_pointer(std::string_view text);

}  // namespace ragfs
