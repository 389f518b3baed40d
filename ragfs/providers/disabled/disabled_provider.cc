#include "ragfs/providers/disabled/disabled_provider.h"

namespace ragfs {

DisabledProvider::DisabledProvider(std::string reason) : reason_(std::move(reason)) {}

GetResult DisabledProvider::get(const CacheKey& /*key*/, Deadline /*deadline*/) { return unavailable(); }

Result<void> DisabledProvider::put(const CacheKey& /*key*/, const ValueParts& /*value*/, const PutOptions& /*options*/,
                                   Deadline /*deadline*/) {
  return unavailable();
}

Result<void> DisabledProvider::erase(const CacheKey& /*key*/, Deadline /*deadline*/) { return unavailable(); }

Result<void> DisabledProvider::put_atomic(std::span<const PutItem> /*items*/, Deadline /*deadline*/) {
  return unavailable();
}

Result<uint64_t> DisabledProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& /*covered*/,
                                            Deadline /*deadline*/) {
  return unavailable();
}

Result<void> DisabledProvider::health(Deadline /*deadline*/) { return {}; }

Result<void> DisabledProvider::close(Deadline /*deadline*/) { return {}; }

}  // namespace ragfs
