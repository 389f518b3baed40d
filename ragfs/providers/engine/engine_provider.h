// EngineProvider: cache objects in an engine that is reached through its own client: Mooncake, openYuanrong, or a
// plug-in of somebody else (ragfs/engine/ragfs_engine_v1.h).
//
// Every value has a seal of 16 bytes before it, which finds out another key's value and a mixture of two: read once
// more, and a miss if it is still none. How large a value is expected to be is remembered by key; one that is larger is
// asked for again. Keys named twice are sent once, the last put counting. An atomic put erases its keys first, because
// engines create together only what is not there: readers may miss it for a moment, and never see the old.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cache/provider.h"
#include "ragfs/providers/engine/channel.h"
#include "ragfs/providers/engine/value_seal.h"

namespace ragfs::engine {

class EngineProvider final : public CacheProvider {
 public:
  // Waits a little for the engine; one that is down joins when it is up. Errors: config: fields, options that the
  // engine refuses, a plug-in that cannot be loaded, an engine that takes small values alone.
  static Result<std::unique_ptr<EngineProvider>> create(EngineConfig config);
  ~EngineProvider() override;

  std::string_view name() const override { return config_.name; }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  GetResult get(const CacheKey& key, Deadline deadline) override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override;
  std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline) override;
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline) override;
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override;
  Result<void> health(Deadline deadline) override;
  std::string incarnation() const override { return incarnation_.text(); }
  void watch_incarnation(std::function<void()> changed) override { incarnation_.watch(std::move(changed)); }
  std::vector<std::string> warnings(Deadline deadline) override;
  std::vector<ProviderMetric> metrics() const override;
  Result<void> close(Deadline deadline) override;

  const EngineStats& stats() const { return stats_; }

 private:
  // The keys of one call, each once.
  struct Batch;
  explicit EngineProvider(EngineConfig config);
  std::string stored_key(const CacheKey& key) const;
  // Errors: invalid_argument, too_large.
  Result<void> check(const CacheKey& key, const ValueParts* value) const;
  // Errors: config: values that the engine takes are too small to be of use.
  Result<void> set_capabilities();
  uint64_t expected_bytes(uint64_t key_hash) const;
  void expect_bytes(uint64_t key_hash, uint64_t size);
  // One round of gets, of those that `wanted` names; what was larger than expected is asked for once more.
  Result<std::string> fetch(Batch& batch, std::vector<size_t> wanted, Deadline deadline);
  Error error_of(const ChannelItem& item, std::string_view message) const;
  Result<void> answer_of(const ChannelItem& item, std::string_view message);

  const EngineConfig config_;
  EngineStats stats_;
  EngineIncarnation incarnation_;
  std::unique_ptr<Channel> channel_;
  ProviderCapabilities capabilities_;
  SealKind seal_kind_ = SealKind::all_bytes;
  // The power of two that a value of a key of this hash last had; 0 = not known.
  std::array<std::atomic<uint8_t>, 4096> expected_{};
};

}  // namespace ragfs::engine
