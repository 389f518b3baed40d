// EngineStats: what the engine provider counts, by name and kind of error.
//
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ragfs/cache/provider.h"

namespace ragfs::engine {

enum class Event : uint8_t {
  host_starts,     // hosts started, or plug-ins opened
  host_failures,   // of those, that could not serve
  host_ends,       // hosts that ended without being told to
  host_kills,      // hosts killed because they owed an answer for too long
  late_answers,    // answers after their caller had stopped waiting
  arena_waits,     // calls that found no room in the shared memory in time
  torn_values,     // values that were a mixture of two, or another key's
  repeated_gets,   // gets again with more room, the value being larger than expected
  repeated_reads,  // gets again because the value was torn
  incarnations,    // changes
};
inline constexpr std::array<std::string_view, 10> kEventNames = {
    "host_starts_total", "host_failures_total", "host_ends_total",     "host_kills_total",     "late_answers_total",
    "arena_waits_total", "torn_values_total",   "repeated_gets_total", "repeated_reads_total", "incarnations_total"};

// By ragfs_engine_v1_status.
inline constexpr std::array<std::string_view, 12> kStatusNames = {
    "ok",           "miss",      "too_small", "unavailable",   "timeout", "invalid_argument",
    "invalid_data", "too_large", "full",      "not_supported", "exists",  "internal"};

class EngineStats {
 public:
  void add(Event event, uint64_t by = 1) { events_[static_cast<size_t>(event)].fetch_add(by, kRelaxed); }
  uint64_t read(Event event) const { return events_[static_cast<size_t>(event)].load(kRelaxed); }
  // What the engine said of one key.
  void add_status(int32_t status) {
    const auto at = static_cast<size_t>(status);
    statuses_[at < statuses_.size() ? at : statuses_.size() - 1].fetch_add(1, kRelaxed);
  }
  uint64_t read_status(int32_t status) const { return statuses_[static_cast<size_t>(status)].load(kRelaxed); }
  void append_to(std::vector<ProviderMetric>& out) const {
    for (size_t i = 0; i < kEventNames.size(); ++i) {
      out.push_back({std::string(kEventNames[i]), static_cast<double>(events_[i].load(kRelaxed))});
    }
    for (size_t i = 0; i < kStatusNames.size(); ++i) {
      out.push_back({"answers_total", static_cast<double>(statuses_[i].load(kRelaxed)),
                     "{status=\"" + std::string(kStatusNames[i]) + "\"}"});
    }
  }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  std::array<std::atomic<uint64_t>, kEventNames.size()> events_{};
  std::array<std::atomic<uint64_t>, kStatusNames.size()> statuses_{};
};

}  // namespace ragfs::engine
