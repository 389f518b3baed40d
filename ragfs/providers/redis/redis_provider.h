// RedisProvider: cache objects in Redis or Valkey: one server, a primary found through Sentinels, or a cluster.
//
// An object is one string: the value, and behind it eight bytes of hash of its key, so that an answer that belongs to
// another key (a proxy that lost or swapped replies) is never taken for this one's. Writes carry a PING with a token of
// their own, for the same reason. Reads ask primaries only, unless the configuration says otherwise (then a confirmed
// erase may be unseen for a while: may_resurrect).
// Sending: a put is sent once. A read or an erase is sent again when a connection was lost under it.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cache/provider.h"
#include "ragfs/providers/redis/executor.h"
#include "ragfs/providers/redis/redis_config.h"

namespace ragfs::redis {

class RedisProvider final : public CacheProvider {
 public:
  // Does not connect: a server that is down joins when it is up. Errors: config, naming the field.
  static Result<std::unique_ptr<RedisProvider>> create(RedisConfig config);
  ~RedisProvider() override;

  std::string_view name() const override { return "redis"; }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  GetResult get(const CacheKey& key, Deadline deadline) override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override;
  std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline) override;
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline) override;
  // One transaction; in a cluster only with a hash_tag.
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override;
  // SCAN and UNLINK on every primary. A cluster that moves slots meanwhile may keep some: unavailable, call again.
  Result<uint64_t> erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) override;
  // A PING to every primary.
  Result<void> health(Deadline deadline) override;
  std::string incarnation() const override { return incarnation_.text(); }
  void watch_incarnation(std::function<void()> changed) override { incarnation_.watch(std::move(changed)); }
  std::vector<std::string> warnings(Deadline deadline) override;
  std::vector<ProviderMetric> metrics() const override;
  Result<void> close(Deadline deadline) override;

  const RedisStats& stats() const { return context_.stats; }

 private:
  explicit RedisProvider(RedisConfig config, std::shared_ptr<const TlsContext> tls);

  uint16_t slot_of(const CacheKey& key) const;
  void append_get(std::string& out, const CacheKey& key) const;
  void append_set(std::string& out, const CacheKey& key, const ValueParts& value, const PutOptions& options) const;
  void append_del(std::string& out, const CacheKey& key) const;
  // The value of `key` in an answer to GET. Errors: invalid_data when it is not this key's.
  GetResult value_in(const CacheKey& key, const RespValue& answer);
  // What stands behind every write: WAIT where configured, and the token.
  std::string end_of_write(std::string_view token) const;
  size_t replies_to_end() const;
  Result<void> check_end(std::string_view token, std::span<const RespValue> answers);
  // Of WAIT or WAITAOF, where configured.
  Result<void> check_wait(const RespValue& waited) const;
  std::string next_token();
  // Commands of one write, with their end. Errors as put().
  Result<std::vector<RespValue>> write(uint16_t slot, std::string commands, size_t replies, bool repeatable,
                                       Deadline deadline);
  // How many of `keys` one MGET may ask for; at least one.
  size_t fit_one_mget(std::span<const CacheKey> keys) const;
  std::vector<GetResult> mget(std::span<const CacheKey> keys, Deadline deadline);
  Error foreign(std::string_view what);
  // The keys below `prefix` of one server.
  Result<uint64_t> purge(NodePool& pool, std::string_view prefix, Deadline deadline);

  ClientContext context_;
  Incarnation incarnation_;
  std::unique_ptr<Router> router_;
  Executor executor_;
  const std::string key_base_;  // before every key
  const ProviderCapabilities capabilities_;
  std::atomic<uint64_t> tokens_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace ragfs::redis
