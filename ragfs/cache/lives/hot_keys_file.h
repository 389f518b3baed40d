// HotKeysFile: the hottest keys of each backend, kept in the state directory for the next run to warm its cache with.
//
// Format: docs/formats.md, "Hot keys". A file that is damaged, too large or absent reads as nothing: what it holds
// decides what is read early, never what is served. Bounds: kMostKeys. Thread-safety: all methods may be called from
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/cache/hot_keys.h"
#include "ragfs/cache/lives/state_dir.h"

namespace ragfs {

struct HotKeysOfBackend {
  uint64_t identity_hash = 0;
  std::vector<HotKey> keys;  // hottest first
  friend bool operator==(const HotKeysOfBackend&, const HotKeysOfBackend&) = default;
};

std::string encode_hot_keys(const std::vector<HotKeysOfBackend>& backends);
// Nothing when it is damaged.
std::optional<std::vector<HotKeysOfBackend>> decode_hot_keys(std::string_view text);

class HotKeysFile {
 public:
  static constexpr size_t kMostKeys = 4096;  // of all backends together

  explicit HotKeysFile(StateDir directory) : directory_(std::move(directory)) {}

  // Empty when there is none, or none that can be read.
  std::vector<HotKeysOfBackend> read() const;
  // Replaces it at once; not synced: what a crash loses is only warmth. Errors: those of the system.
  Result<void> write(const std::vector<HotKeysOfBackend>& backends) const;

 private:
  const StateDir directory_;
};

}  // namespace ragfs
