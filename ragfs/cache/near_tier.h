// NearTier: objects of a remote provider in this process's own memory, in front of it (docs/design.md 3.7).
//
// It holds what passed the rules of a read, and what fills and writes stored: the same envelopes, byte for byte, so
// that the same stamps, epochs and expiry judge them. A hit in it is one look-up in memory. It knows no rule itself:
// the coherence domain decides what may be served, and who erases. Not for: providers in this process (nothing is
// nearer). Open while the domain is in an epoch; shut it answers nothing and takes nothing. Thread-safety: all methods
// may be called from any thread. shut() takes no lock: a child of fork() calls it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "ragfs/base/striped_counters.h"
#include "ragfs/cache/provider.h"

namespace ragfs {

enum class NearCounter : uint8_t {
  hits,      // served
  misses,    // looked up and not there
  refused,   // there, and not served: a record, the epoch, its expiry
  copies,    // of what the provider gave
  puts,      // by fills and writes
  rejected,  // too large, or no room
  erases,    // by mutations
  clears,    // all of it: a new epoch
};
inline constexpr size_t kNearCounterCount = static_cast<size_t>(NearCounter::clears) + 1;

class NearTier {
 public:
  // `memory` is in this process (zero_copy) and has get_by_hash and erase_if.
  explicit NearTier(std::shared_ptr<CacheProvider> memory);

  bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  void open() noexcept { open_.store(true, std::memory_order_release); }
  void shut() noexcept { open_.store(false, std::memory_order_release); }

  // As CacheProvider's; empty while shut.
  Bytes get_by_hash(uint64_t key_hash) noexcept { return is_open() ? memory_->get_by_hash(key_hash) : Bytes(); }
  void prefetch(uint64_t key_hash) const noexcept { memory_->prefetch(key_hash); }
  std::optional<Bytes> get(const CacheKey& key);
  // Stores, counted as `why`. What cannot be stored is absent afterwards.
  void put(const CacheKey& key, const ValueParts& value, const PutOptions& options, NearCounter why);
  void erase(const CacheKey& key);
  void erase_if(const std::function<bool(std::string_view key, std::string_view value)>& covered);
  void clear();

  void count(NearCounter counter) noexcept { counters_.add(static_cast<size_t>(counter)); }
  uint64_t read(NearCounter counter) const noexcept { return counters_.read(static_cast<size_t>(counter)); }
  // Names begin with "near_".
  std::vector<ProviderMetric> metrics() const;

 private:
  const std::shared_ptr<CacheProvider> memory_;
  std::atomic<bool> open_{true};
  StripedCounters<kNearCounterCount> counters_;
};

}  // namespace ragfs
