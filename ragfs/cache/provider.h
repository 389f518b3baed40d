// CacheProvider: a key-value store that holds cache objects. Providers decide where objects are; they know nothing of
// paths, stamps or epochs. No layer above names a provider: optional abilities go through ProviderCapabilities.
//
// Contract (tests/contract/provider_contract.h runs it on every provider):
// - A miss is an empty optional, never an error; an internal error is never a miss.
// - put and erase succeed only when the engine confirmed. put overwrites. erase of an absent key succeeds.
// - A put is never retried inside a call: success would hide that the first copy may still be under way.
// - A call ends by its deadline, all its steps included. After `timeout` or a lost connection (`unavailable` with
//   outcome_unknown) a put may still land later.
// - Batches keep input order and give one result a key; one bad key does not fail its neighbours.
// Errors: unavailable, timeout, invalid_argument, invalid_data, too_large, full, internal.
// Thread-safety: all methods may be called from any thread at any time, close() included; calls after it are
// unavailable, but close() itself.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/cache/key.h"

namespace ragfs {

struct ProviderCapabilities {
  bool native_ttl = false;  // PutOptions::ttl_ms is honoured; without it the envelope's expiry alone counts
  bool batch_get = false;   // get_many is cheaper than single gets
  bool batch_put = false;   // put_many and erase_many are cheaper than single calls
  uint32_t atomic_put = 0;  // most items of put_atomic; 0 = not supported
  bool partial_read = false;
  bool by_hash = false;          // get_by_hash is supported
  bool zero_copy = false;        // get returns a pin on the stored bytes, with a note that lives with the object
  bool may_resurrect = false;    // can forget a confirmed erase or overwrite without a new incarnation
  bool enumerates = false;       // erase_if is supported
  bool outlives_process = true;  // what is stored may be there in the next run
  size_t max_value_bytes = SIZE_MAX;
  size_t max_batch_keys = 1000;
};

// A value to store, in two parts so that an envelope's header need not be joined with its payload first. Borrowed for
// the call; what is stored is header followed by payload.
struct ValueParts {
  std::string_view header;
  std::string_view payload;
  size_t size() const { return header.size() + payload.size(); }
};

struct PutOptions {
  static constexpr int64_t kLongestTtl_ms = int64_t{1} << 40;  // some 35 years; longer is never

  int64_t ttl_ms = 0;      // 0 = none
  bool preferred = false;  // keep under pressure (.abstract.md, .overview.md, listings)

  bool expires() const { return ttl_ms > 0 && ttl_ms < kLongestTtl_ms; }
};

struct PutItem {
  CacheKey key;
  ValueParts value;
  PutOptions options;
};

using GetResult = Result<std::optional<Bytes>>;

// One figure of a provider, for /metrics and `cache stats`.
struct ProviderMetric {
  std::string name;  // without prefix, Prometheus style: "dram_bytes", "evictions_total"
  double value = 0;
  std::string labels = {};  // as Prometheus writes them, such as {dir="/d"}; "" = none

  std::string full_name() const { return name + labels; }
};

class CacheProvider {
 public:
  virtual ~CacheProvider() = default;

  virtual std::string_view name() const = 0;
  virtual const ProviderCapabilities& capabilities() const = 0;

  // A get of a key of this hash follows at once: an in-process provider may start loading its index into the CPU's
  // caches.
  virtual void prefetch(uint64_t key_hash) const noexcept;
  virtual GetResult get(const CacheKey& key, Deadline deadline) = 0;
  // An object of this process's memory whose key has this hash, or an empty Bytes. Nearly always the only one; the
  // caller makes sure from the bytes themselves, and asks get() when they are another key's or there are none. Only
  // with the `by_hash` capability.
  virtual Bytes get_by_hash(uint64_t key_hash) noexcept;
  virtual Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                           Deadline deadline) = 0;
  virtual Result<void> erase(const CacheKey& key, Deadline deadline) = 0;

  // Defaults: one call after the other. The results are as many as the keys.
  virtual std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline);
  virtual std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline);
  virtual std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline);
  // All items or none. Errors besides the usual: not_supported; too_large for more than capabilities().atomic_put
  // items.
  virtual Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline);

  // Erases every object for which `covered` (called with key and value, under no lock that put or get may hold for
  // long) is true; the count of erased. Errors: not_supported without the `enumerates` capability.
  virtual Result<uint64_t> erase_if(const std::function<bool(std::string_view key, std::string_view value)>& covered,
                                    Deadline deadline);
  // Erases every object whose key begins with one of `prefixes`, and its bytes from wherever they are stored: not from
  // memory alone. The count of copies erased. Of a key that is put meanwhile the new object may stay. The default does
  // it with erase_if. Errors: not_supported; timeout (some are left: call again).
  virtual Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline);

  // Asks the engine whether it works. Cheap enough for a probe.
  virtual Result<void> health(Deadline deadline) = 0;
  // Changes whenever acknowledged writes may be gone.
  virtual std::string incarnation() const = 0;
  // `changed` is called each time incarnation() becomes another, before any answer of the new incarnation is given to
  // anybody; at most one listener, none when empty. Returns when the former listener is not running any more. For
  // providers whose engine lives outside this process; the default never calls.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who listens keeps it
  virtual void watch_incarnation(std::function<void()> /*changed*/) {}
  // What an operator should know about how the engine is set up, a sentence each; for `ragfs doctor`.
  virtual std::vector<std::string> warnings(Deadline /*deadline*/) { return {}; }
  virtual std::vector<ProviderMetric> metrics() const { return {}; }
  // Ends work in flight within the deadline; final and idempotent.
  virtual Result<void> close(Deadline deadline) = 0;
};

// Whether `key` begins with one of them.
bool begins_with_any(std::string_view key, std::span<const std::string> prefixes);

// True when a put that failed with `error` may nevertheless take effect later.
inline bool outcome_unknown(const Error& error) {
  return error.code == ErrorCode::timeout || error.code == ErrorCode::unavailable || error.code == ErrorCode::internal;
}

}  // namespace ragfs
