#include "ragfs/cache/provider.h"

#include <fmt/format.h>

#include <algorithm>

namespace ragfs {

Bytes CacheProvider::get_by_hash(uint64_t /*key_hash*/) noexcept { return {}; }

void CacheProvider::prefetch(uint64_t /*key_hash*/) const noexcept {}

std::vector<GetResult> CacheProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  std::vector<GetResult> results;
  results.reserve(keys.size());
  for (const CacheKey& key : keys) results.push_back(get(key, deadline));
  return results;
}

std::vector<Result<void>> CacheProvider::put_many(std::span<const PutItem> items, Deadline deadline) {
  std::vector<Result<void>> results;
  results.reserve(items.size());
  for (const PutItem& item : items) results.push_back(put(item.key, item.value, item.options, deadline));
  return results;
}

std::vector<Result<void>> CacheProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  std::vector<Result<void>> results;
  results.reserve(keys.size());
  for (const CacheKey& key : keys) results.push_back(erase(key, deadline));
  return results;
}

Result<void> CacheProvider::put_atomic(std::span<const PutItem> /*items*/, Deadline /*deadline*/) {
  return fail(ErrorCode::not_supported, fmt::format("provider '{}' has no atomic put", name()));
}

Result<uint64_t> CacheProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& /*covered*/,
                                         Deadline /*deadline*/) {
  return fail(ErrorCode::not_supported, fmt::format("provider '{}' cannot enumerate its objects", name()));
}

Result<uint64_t> CacheProvider::erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) {
  return erase_if([&](std::string_view key, std::string_view) { return begins_with_any(key, prefixes); }, deadline);
}

bool begins_with_any(std::string_view key, std::span<const std::string> prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return key.starts_with(prefix); });
}

}  // namespace ragfs
