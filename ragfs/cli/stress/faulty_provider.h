// FaultyProvider: any provider, with calls that are slow, fail, get lost, or land later.
//
// For: the stress harness and tests over real engines; which call suffers is drawn from a seed. A test that wants one
// certain fault at one certain call uses ScriptedProvider. Not for: production.
// A write that lands later lands inside a later call, so that no time limit and no thread is needed for it.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/provider.h"

namespace ragfs::stress {

// Chances per million calls.
struct ProviderFaults {
  uint32_t fail = 0;         // answers an error, does nothing
  uint32_t lose_call = 0;    // answers timeout, does nothing
  uint32_t lose_answer = 0;  // does it, answers timeout
  uint32_t land_late = 0;    // answers timeout, does it later (put and erase)
  uint32_t slow = 0;         // waits before and after
  uint32_t resurrect = 0;    // an erased or overwritten object comes back later; needs may_resurrect
  int64_t slow_most_us = 300;

  uint32_t sum() const { return fail + lose_call + lose_answer + land_late; }
};

class FaultyProvider final : public CacheProvider {
 public:
  FaultyProvider(std::shared_ptr<CacheProvider> provider, const ProviderFaults& faults,
                 const ProviderCapabilities& capabilities, uint64_t seed);

  void set_faults(bool on) { faulty_.store(on); }
  uint64_t injected() const { return injected_.load(); }
  uint64_t landed_late() const { return landed_.load(); }

  std::string_view name() const override { return provider_->name(); }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  GetResult get(const CacheKey& key, Deadline deadline) override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  // Whole where no fault is to be injected, else one by one.
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override;
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline) override;
  Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) override {
    return provider_->erase_prefixes(prefixes, deadline);
  }
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                            Deadline deadline) override;
  Result<void> health(Deadline deadline) override { return provider_->health(deadline); }
  std::string incarnation() const override { return provider_->incarnation(); }
  void watch_incarnation(std::function<void()> changed) override { provider_->watch_incarnation(std::move(changed)); }
  Result<void> close(Deadline deadline) override { return provider_->close(deadline); }

 private:
  enum class Fate : uint8_t { none, fail, lose_call, lose_answer, land_late };
  // A put (value set) or an erase that lands later.
  struct Late {
    CacheKey key;
    std::optional<std::string> value;
    PutOptions options;
  };

  uint32_t draw();
  bool chance(uint32_t per_million) { return faulty_.load() && per_million > 0 && draw() < per_million; }
  Fate draw_fate();
  bool injects() const { return faults_.sum() > 0 || faults_.slow > 0 || faults_.resurrect > 0; }
  void wait_a_little();
  void defer(Late late);
  void land_one();
  // Keeps the object under `key` to bring it back.
  void remember(const CacheKey& key);

  const std::shared_ptr<CacheProvider> provider_;
  const ProviderFaults faults_;
  ProviderCapabilities capabilities_;
  std::atomic<uint64_t> draws_;
  std::atomic<bool> faulty_{true};
  std::atomic<uint64_t> injected_{0};
  std::atomic<uint64_t> landed_{0};
  std::atomic<size_t> late_count_{0};
  Mutex mutex_;
  std::deque<Late> late_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::stress
