// EmbeddedProvider: the cache in this process's own memory, with local disks behind it if wanted. The default.
//
// For: objects that are read by the process that filled them: a get returns a pin on the stored bytes, without a copy
// or a system call. With disks, what memory evicts is kept there, and an orderly close keeps all of it for the next
// process; while every disk was closed in order the incarnation stays the same, else it is another one. Without disks
// it is random. Not for: sharing between processes.
//
// put_atomic: readers that look its keys up one after the other never see an old value after a new one
// (MemoryTier::put_atomic). A put that fails leaves the key absent. Deadlines are only looked at by erase_if: nothing
// else here waits.
// Thread-safety: all methods may be called from any thread. Bytes may outlive the provider.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cache/provider.h"
#include "ragfs/providers/embedded/embedded_config.h"
#include "ragfs/store/memory/memory_tier.h"

namespace ragfs {

class EmbeddedProvider final : public CacheProvider {
 public:
  // Errors: config (see EmbeddedConfig::validate()), full (no address space).
  static Result<std::unique_ptr<EmbeddedProvider>> create(const EmbeddedConfig& config);
  // Closes it, within a second.
  ~EmbeddedProvider() override;

  std::string_view name() const override { return "embedded"; }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }

  void prefetch(uint64_t key_hash) const noexcept override;
  GetResult get(const CacheKey& key, Deadline deadline) override;
  Bytes get_by_hash(uint64_t key_hash) noexcept override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override;
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override;
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                            Deadline deadline) override;
  // From memory and from the disks.
  Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) override;
  Result<void> health(Deadline deadline) override;
  std::string incarnation() const override { return incarnation_; }
  std::vector<std::string> warnings(Deadline deadline) override;
  std::vector<ProviderMetric> metrics() const override;
  // Gives the memory back, but for what readers hold.
  Result<void> close(Deadline deadline) override;

  const MemoryTier& memory() const { return *memory_; }
  // nullptr = none.
  SecondTier* second() const { return second_.get(); }

 private:
  EmbeddedProvider(std::unique_ptr<SecondTier> second, std::unique_ptr<MemoryTier> memory, const Clock& clock);
  MemoryTier::Item item_for(const CacheKey& key, const ValueParts& value, const PutOptions& options) const;

  std::optional<SecondTier::Change> change(const CacheKey& key, Deadline deadline);

  const std::unique_ptr<SecondTier> second_;  // nullptr = none; outlives the memory tier, whose sink it is
  const std::unique_ptr<MemoryTier> memory_;
  const Clock& clock_;
  const ProviderCapabilities capabilities_;
  const std::string incarnation_;
  std::atomic<bool> closed_{false};
};

}  // namespace ragfs
