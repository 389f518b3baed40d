#include "ragfs/providers/embedded/embedded_config.h"

#include <fmt/format.h>

#include "ragfs/base/hash.h"
#include "ragfs/cache/key.h"

namespace ragfs {

MemoryTierConfig EmbeddedConfig::memory(EvictionSink* sink) const {
  return {.capacity_bytes = dram_bytes,
          .max_objects = max_objects,
          .max_object_bytes = max_object_bytes,
          .shards = shards,
          .clock = clock,
          .sink = sink,
          .owner_of = [](std::string_view key) { return hash64(account_of_key(key)); },
          .owner_share_percent = account_share_percent};
}

Result<void> EmbeddedConfig::validate() const {
  // Checked here under its own name; the other fields are called the same below.
  if (dram_bytes < MemoryTierConfig::kLeastCapacityBytes || dram_bytes > MemoryTierConfig::kMostCapacityBytes) {
    return fail(ErrorCode::config,
                fmt::format("dram_bytes is {}; allowed: {} to {}", dram_bytes, MemoryTierConfig::kLeastCapacityBytes,
                            MemoryTierConfig::kMostCapacityBytes));
  }
  if (disk.has_value()) {
    if (auto valid = disk->validate(); !valid) return valid;
  }
  return memory().validate();
}

}  // namespace ragfs
