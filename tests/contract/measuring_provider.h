// MeasuringProvider: passes every call on and counts how many are inside at once.
//
// For: tests of the concurrency limit, at the seam between the cache and any provider. It says that it is not
// in-process (no zero_copy), so that the limit applies to it. The first calls wait inside for each other (crowd), so
// that a limit that lets too many in is seen every time. Not for: timing.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/cache/provider.h"

namespace ragfs::contract {

class MeasuringProvider final : public CacheProvider {
 public:
  // Calls stay inside until `crowd` of them are there, once, or for at most `patience_ms`.
  MeasuringProvider(std::shared_ptr<CacheProvider> inner, uint32_t crowd, int64_t patience_ms)
      : inner_(std::move(inner)), capabilities_(inner_->capabilities()), crowd_(crowd), patience_ms_(patience_ms) {
    capabilities_.zero_copy = false;
  }

  uint32_t most_inside() const {
    const MutexLock lock(mutex_);
    return most_inside_;
  }
  uint64_t calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }

  std::string_view name() const override { return inner_->name(); }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  GetResult get(const CacheKey& key, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->get(key, deadline);
  }
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                   Deadline deadline) override {
    const Inside inside(*this);
    return inner_->put(key, value, options, deadline);
  }
  Result<void> erase(const CacheKey& key, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->erase(key, deadline);
  }
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->get_many(keys, deadline);
  }
  std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->put_many(items, deadline);
  }
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->erase_many(keys, deadline);
  }
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override {
    const Inside inside(*this);
    return inner_->put_atomic(items, deadline);
  }
  Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) override {
    return inner_->erase_prefixes(prefixes, deadline);
  }
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                            Deadline deadline) override {
    return inner_->erase_if(covered, deadline);
  }
  Result<void> health(Deadline deadline) override { return inner_->health(deadline); }
  std::string incarnation() const override { return inner_->incarnation(); }
  Result<void> close(Deadline deadline) override { return inner_->close(deadline); }

 private:
  class Inside {
   public:
    explicit Inside(MeasuringProvider& provider) : provider_(provider) { provider_.come_in(); }
    ~Inside() {
      const MutexLock lock(provider_.mutex_);
      --provider_.inside_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    MeasuringProvider& provider_;
  };

  void come_in() {
    const Deadline until = Deadline::in_ms(patience_ms_);
    const MutexLock lock(mutex_);
    ++calls_;
    most_inside_ = std::max(most_inside_, ++inside_);
    if (most_inside_ >= crowd_) crowded_.notify_all();
    while (most_inside_ < crowd_ && crowded_.wait_until(mutex_, until)) {
    }
  }

  const std::shared_ptr<CacheProvider> inner_;
  ProviderCapabilities capabilities_;
  const uint32_t crowd_;
  const int64_t patience_ms_;

  mutable Mutex mutex_;
  CondVar crowded_;
  uint32_t inside_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint32_t most_inside_ RAGFS_GUARDED_BY(mutex_) = 0;
  uint64_t calls_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs::contract
