// Witness: the file that names the last life which may have changed a backend of the namespace.
//
// A start is warm only if the provider's pointer names the same life: so no life that changed files without the cache,
// or beside another state of the provider, is missed. It is written anew, synced and renamed before the first mutation
// of every life and before each attempt at the pointer. It also names itself (directory and file): a copied or restored
// witness is none. Format: docs/formats.md, "Records of lives".
// Thread-safety: all methods may be called from any thread; processes may write at once (the last one stands).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/cache/lives/state_dir.h"

namespace ragfs {

struct WitnessRecord {
  uint64_t life = 0;
  uint64_t place = 0;  // of the file that holds it: a copy lies elsewhere
  int64_t written_at_ns = 0;
  std::string writer;  // for the operator
  friend bool operator==(const WitnessRecord&, const WitnessRecord&) = default;
};

std::string encode_witness(const WitnessRecord& record);
std::optional<WitnessRecord> decode_witness(std::string_view text);

class Witness {
 public:
  // `directory` must outlive it.
  explicit Witness(const StateDir& directory) : directory_(directory) {}

  // The life that it names; 0 when there is a file that names none (damaged, copied). Nothing when there is no file.
  // Errors: those of the system.
  Result<std::optional<uint64_t>> read() const;
  // Names `life`, on disk when this returns. Makes the directory when needed. Errors: those of the system: then it may
  // name either life.
  Result<void> move_to(uint64_t life, std::string_view writer) const;

 private:
  const StateDir& directory_;
};

}  // namespace ragfs
