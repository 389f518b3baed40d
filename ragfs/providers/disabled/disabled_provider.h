// DisabledProvider: holds nothing and says so: every call is `unavailable`, but health and close.
//
// For: running on the backend alone when the configured provider could not be started (failure_mode bypass), or when no
// provider was asked for. Not for: hiding that a provider is missing; the reason it was made with is in every error.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <string>
#include <string_view>

#include "ragfs/cache/provider.h"

namespace ragfs {

class DisabledProvider final : public CacheProvider {
 public:
  // `reason` is read by an operator: "disabled by configuration", "redis at start: connection refused".
  explicit DisabledProvider(std::string reason = "disabled by configuration");

  std::string_view name() const override { return "disabled"; }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  const std::string& reason() const { return reason_; }

  GetResult get(const CacheKey& key, Deadline deadline) override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override;
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                            Deadline deadline) override;
  // Always well: there is nothing that could break.
  Result<void> health(Deadline deadline) override;
  // The same for ever: nothing is acknowledged, so nothing can be lost.
  std::string incarnation() const override { return "disabled"; }
  Result<void> close(Deadline deadline) override;

 private:
  std::unexpected<Error> unavailable() const { return fail(ErrorCode::unavailable, "no cache: " + reason_); }

  const ProviderCapabilities capabilities_;
  const std::string reason_;
};

}  // namespace ragfs
