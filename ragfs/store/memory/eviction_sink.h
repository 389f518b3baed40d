// EvictionSink: where a memory tier offers what it evicts.
//
// For: a second tier behind it. Not for: what is erased, replaced or expired; that is gone. Thread-safety:
// implementations are called by any thread that puts, under no lock, and must not block.
#pragma once

#include <cstdint>
#include <string_view>

namespace ragfs {

// Borrowed for the call.
struct EvictedObject {
  std::string_view key;
  uint64_t hash = 0;
  std::string_view value;
  int64_t expires_at_ns = 0;  // on the tier's clock; 0 = never
  bool preferred = false;
  bool touched = false;  // was hit since it came in, or had come back after an eviction
};

class EvictionSink {
 public:
  virtual ~EvictionSink() = default;
  // Asked before victims are taken out; the answer comes back with each of them.
  virtual uint64_t before_eviction() noexcept = 0;
  virtual void evicted(const EvictedObject& object, uint64_t ticket) = 0;
};

}  // namespace ragfs
