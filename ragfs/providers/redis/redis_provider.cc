#include "ragfs/providers/redis/redis_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ragfs/base/clock.h"
#include "ragfs/base/hash.h"
#include "ragfs/base/random.h"
#include "ragfs/providers/redis/cluster_router.h"
#include "ragfs/providers/redis/key_slot.h"
#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

constexpr size_t kTrailerBytes = 8;
constexpr size_t kWordOverheadBytes = 8;  // "$123\r\n" and "\r\n"
constexpr uint32_t kMostAtomicItems = 8;
constexpr size_t kMaxValueBytes = (512U << 20) - 1024;  // a string of Redis

using Trailer = std::array<char, kTrailerBytes>;

// Little-endian, wherever it is written.
Trailer trailer_of(const CacheKey& key) {
  Trailer out;
  const uint64_t hash = hash64(key.text());
  for (size_t i = 0; i < kTrailerBytes; ++i) out[i] = static_cast<char>(hash >> (8 * i));
  return out;
}

std::string base_of(const RedisConfig& config) {
  std::string out;
  if (!config.hash_tag.empty()) out = fmt::format("{{{}}}:", config.hash_tag);
  if (!config.key_prefix.empty()) out += config.key_prefix + ":";
  return out;
}

ProviderCapabilities capabilities_of(const RedisConfig& config) {
  const bool one_slot = config.mode != Mode::cluster || !config.hash_tag.empty();
  return {.native_ttl = true,
          .batch_get = true,
          .batch_put = true,
          .atomic_put = one_slot ? kMostAtomicItems : 0,
          .may_resurrect = config.read_from_replica,
          .max_value_bytes = kMaxValueBytes,
          .max_batch_keys = static_cast<size_t>(config.max_batch_keys)};
}

std::unique_ptr<Router> make_router(ClientContext& context, Incarnation& incarnation) {
  if (context.config.mode == Mode::cluster) return std::make_unique<ClusterRouter>(context, incarnation);
  return std::make_unique<SingleRouter>(context, incarnation);
}

std::unexpected<Error> closed() { return fail(ErrorCode::unavailable, "the redis provider is closed"); }

// What no server needs to be asked about.
Result<void> storable(const CacheKey& key, const ValueParts& value) {
  if (key.text().empty()) return fail(ErrorCode::invalid_argument, "a cache key must not be empty");
  if (value.size() <= kMaxValueBytes) return {};
  return fail(ErrorCode::too_large, fmt::format("{} bytes exceed a string of redis", value.size()));
}

template <typename T>
std::vector<Result<T>> all_failed(size_t count, const Error& error) {
  std::vector<Result<T>> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.emplace_back(std::unexpect, error);
  return out;
}

// Counts a call when it ends.
class Timed {
 public:
  Timed(RedisStats& stats, Command command) : stats_(stats), command_(command) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  template <typename T>
  Result<T> end(Result<T> result) {
    note(result ? nullptr : &result.error());
    return result;
  }
  template <typename T>
  std::vector<Result<T>> end(std::vector<Result<T>> results) {
    const auto failed = std::ranges::find_if(results, [](const Result<T>& at) { return !at; });
    note(failed == results.end() ? nullptr : &failed->error());
    return results;
  }

 private:
  void note(const Error* error) { stats_.ended(command_, Clock::system().monotonic_ns() - start_ns_, error); }
  RedisStats& stats_;
  const Command command_;
  const int64_t start_ns_ = Clock::system().monotonic_ns();
};

}  // namespace

Result<std::unique_ptr<RedisProvider>> RedisProvider::create(RedisConfig config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  std::shared_ptr<const TlsContext> tls;
  if (std::ranges::any_of(config.endpoints, [](const Endpoint& at) { return at.tls; })) {
    auto made = TlsContext::create(config.tls);
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  return std::unique_ptr<RedisProvider>(new RedisProvider(std::move(config), std::move(tls)));
}

RedisProvider::RedisProvider(RedisConfig config, std::shared_ptr<const TlsContext> tls)
    : context_{.config = std::move(config), .tls = std::move(tls), .stats = {}},
      router_(make_router(context_, incarnation_)),
      executor_(context_, *router_),
      key_base_(base_of(context_.config)),
      capabilities_(capabilities_of(context_.config)),
      tokens_(random_u64() & ~uint64_t{0xffffffff}) {}

RedisProvider::~RedisProvider() { router_->close(); }

uint16_t RedisProvider::slot_of(const CacheKey& key) const {
  if (!router_->clustered()) return 0;
  // The base has the hash tag, if there is one; else the whole key counts, which has no braces.
  if (!context_.config.hash_tag.empty()) return key_slot(key_base_);
  return key_slot(key_base_ + std::string(key.text()));
}

void RedisProvider::append_get(std::string& out, const CacheKey& key) const {
  begin_command(out, 2);
  append_word(out, "GET");
  append_word(out, key_base_, key.text());
}

void RedisProvider::append_set(std::string& out, const CacheKey& key, const ValueParts& value,
                               const PutOptions& options) const {
  const Trailer trailer = trailer_of(key);
  out.reserve(out.size() + value.size() + 256);
  begin_command(out, options.expires() ? 5 : 3);
  append_word(out, "SET");
  append_word(out, key_base_, key.text());
  append_word(out, value.header, value.payload, {trailer.data(), trailer.size()});
  if (!options.expires()) return;
  append_word(out, "PX");
  append_word(out, fmt::format_int(options.ttl_ms).c_str());
}

void RedisProvider::append_del(std::string& out, const CacheKey& key) const {
  begin_command(out, 2);
  append_word(out, "DEL");
  append_word(out, key_base_, key.text());
}

Error RedisProvider::foreign(std::string_view what) {
  context_.stats.add(Event::foreign_values);
  // Which answers of this server went astray cannot be told: none of its connections is believed any more.
  if (auto pools = router_->primaries(Deadline::in_ms(0))) {
    for (const auto& pool : *pools) pool->drop_connections("an answer belonged to another call");
  }
  return {ErrorCode::invalid_data, fmt::format("redis: {}", what)};
}

GetResult RedisProvider::value_in(const CacheKey& key, const RespValue& answer) {
  if (answer.is_null()) return std::nullopt;
  const Trailer trailer = trailer_of(key);
  const size_t size = answer.text.size();
  if (answer.type != RespType::text || size < kTrailerBytes ||
      std::memcmp(answer.text.data() + size - kTrailerBytes, trailer.data(), kTrailerBytes) != 0) {
    return std::unexpected(foreign(fmt::format("the answer for {} is another key's or not ours", key.text())));
  }
  return answer.text.slice(0, size - kTrailerBytes);
}

GetResult RedisProvider::get(const CacheKey& key, Deadline deadline) {
  Timed timed(context_.stats, Command::get);
  if (closed_.load(std::memory_order_relaxed)) return timed.end<std::optional<Bytes>>(closed());
  std::string commands;
  commands.reserve(64 + key_base_.size() + key.text().size());
  append_get(commands, key);
  auto answers = executor_.run(
      {.slot = slot_of(key), .commands = commands, .repeatable = true, .replica_may_answer = true}, deadline);
  if (!answers) return timed.end<std::optional<Bytes>>(std::unexpected(std::move(answers.error())));
  return timed.end(value_in(key, answers->front()));
}

std::string RedisProvider::next_token() { return fmt::format("ragfs-{:x}", tokens_.fetch_add(1) + 1); }

size_t RedisProvider::replies_to_end() const {
  return context_.config.wait_replicas > 0 || context_.config.wait_aof ? 2 : 1;
}

std::string RedisProvider::end_of_write(std::string_view token) const {
  std::string out;
  const RedisConfig& config = context_.config;
  const std::string replicas = fmt::format("{}", config.wait_replicas);
  const std::string timeout_ms = fmt::format("{}", config.wait_timeout_ms);
  if (config.wait_aof) {
    append_command(out, {"WAITAOF", "1", replicas, timeout_ms});
  } else if (config.wait_replicas > 0) {
    append_command(out, {"WAIT", replicas, timeout_ms});
  }
  append_command(out, {"PING", token});
  return out;
}

Result<void> RedisProvider::check_end(std::string_view token, std::span<const RespValue> answers) {
  const RespValue& last = answers.back();
  if (last.is_error()) return std::unexpected(error_of_reply(last.text.view(), "server"));
  if (last.text.view() != token) return std::unexpected(foreign("the answers of a write are another call's"));
  return replies_to_end() == 1 ? Result<void>{} : check_wait(answers.front());
}

Result<void> RedisProvider::check_wait(const RespValue& waited) const {
  const RedisConfig& config = context_.config;
  if (waited.is_error()) return std::unexpected(error_of_reply(waited.text.view(), "server"));
  int64_t replicas = waited.integer;
  if (config.wait_aof) {
    if (!waited.is_array() || waited.items.size() != 2) {
      return fail(ErrorCode::internal, "redis: WAITAOF was not answered with two numbers");
    }
    replicas = waited.items[1].integer;
    if (waited.items[0].integer < 1) {
      return fail(ErrorCode::unavailable,
                  fmt::format("redis: not in the append-only file in {} ms", config.wait_timeout_ms));
    }
  }
  if (replicas >= config.wait_replicas) return {};
  return fail(ErrorCode::unavailable, fmt::format("redis: {} of {} replicas confirmed in {} ms", replicas,
                                                  config.wait_replicas, config.wait_timeout_ms));
}

Result<std::vector<RespValue>> RedisProvider::write(uint16_t slot, std::string commands, size_t replies,
                                                    bool repeatable, Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  const std::string token = next_token();
  commands += end_of_write(token);
  auto answers = executor_.run(
      {.slot = slot, .commands = commands, .replies = replies + replies_to_end(), .repeatable = repeatable}, deadline);
  if (!answers) return answers;
  if (auto good = check_end(token, std::span<const RespValue>(*answers).subspan(replies)); !good) {
    return std::unexpected(good.error());
  }
  return answers;
}

Result<void> RedisProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                Deadline deadline) {
  Timed timed(context_.stats, Command::put);
  if (auto fits = storable(key, value); !fits) return timed.end(std::move(fits));
  std::string commands;
  append_set(commands, key, value, options);
  auto answers = write(slot_of(key), std::move(commands), 1, false, deadline);
  if (!answers) return timed.end<void>(std::unexpected(std::move(answers.error())));
  if (answers->front().is_status("OK")) return timed.end(Result<void>{});
  return timed.end<void>(std::unexpected(foreign("SET was not answered with OK")));
}

Result<void> RedisProvider::erase(const CacheKey& key, Deadline deadline) {
  Timed timed(context_.stats, Command::erase);
  std::string commands;
  append_del(commands, key);
  auto answers = write(slot_of(key), std::move(commands), 1, true, deadline);
  if (!answers) return timed.end<void>(std::unexpected(std::move(answers.error())));
  if (answers->front().type == RespType::integer) return timed.end(Result<void>{});
  return timed.end<void>(std::unexpected(foreign("DEL was not answered with a number")));
}

size_t RedisProvider::fit_one_mget(std::span<const CacheKey> keys) const {
  const auto most_keys = static_cast<size_t>(context_.config.max_batch_keys);
  const auto most_bytes = static_cast<size_t>(context_.config.max_batch_bytes);
  size_t bytes = 0;
  size_t count = 0;
  while (count < keys.size() && count < most_keys && (count == 0 || bytes < most_bytes)) {
    bytes += key_base_.size() + keys[count++].text().size() + kWordOverheadBytes;
  }
  return count;
}

std::vector<GetResult> RedisProvider::mget(std::span<const CacheKey> keys, Deadline deadline) {
  std::string commands;
  begin_command(commands, keys.size() + 1);
  append_word(commands, "MGET");
  for (const CacheKey& key : keys) append_word(commands, key_base_, key.text());
  auto answers = executor_.run({.commands = commands, .repeatable = true, .replica_may_answer = true}, deadline);
  Error error;
  if (answers && answers->front().items.size() == keys.size()) {
    std::vector<GetResult> out;
    out.reserve(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) out.push_back(value_in(keys[i], answers->front().items[i]));
    return out;
  }
  error = answers ? foreign("MGET was answered with another number of values") : answers.error();
  return all_failed<std::optional<Bytes>>(keys.size(), error);
}

std::vector<GetResult> RedisProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  Timed timed(context_.stats, Command::get_many);
  std::vector<GetResult> results;
  if (closed_.load(std::memory_order_relaxed)) {
    return timed.end(all_failed<std::optional<Bytes>>(keys.size(), closed().error()));
  }
  results.reserve(keys.size());
  if (!router_->clustered()) {
    while (results.size() < keys.size()) {
      const auto rest = keys.subspan(results.size());
      for (GetResult& one : mget(rest.first(fit_one_mget(rest)), deadline)) results.push_back(std::move(one));
    }
    return timed.end(std::move(results));
  }
  const auto answers = executor_.run_many({.count = keys.size(),
                                           .slot = [&](size_t i) { return slot_of(keys[i]); },
                                           .append = [&](size_t i, std::string& out) { append_get(out, keys[i]); },
                                           .repeatable = true},
                                          deadline);
  for (size_t i = 0; i < keys.size(); ++i) {
    results.push_back(answers[i] ? value_in(keys[i], *answers[i]) : std::unexpected(answers[i].error()));
  }
  return timed.end(std::move(results));
}

std::vector<Result<void>> RedisProvider::put_many(std::span<const PutItem> items, Deadline deadline) {
  Timed timed(context_.stats, Command::put_many);
  if (closed_.load(std::memory_order_relaxed)) {
    return timed.end(all_failed<void>(items.size(), closed().error()));
  }
  const std::string token = next_token();
  std::vector<Result<void>> results(items.size());
  std::vector<size_t> sent;
  for (size_t i = 0; i < items.size(); ++i) {
    results[i] = storable(items[i].key, items[i].value);
    if (results[i]) sent.push_back(i);
  }
  const auto item = [&](size_t i) -> const PutItem& { return items[sent[i]]; };
  const auto answers = executor_.run_many(
      {.count = sent.size(),
       .slot = [&](size_t i) { return slot_of(item(i).key); },
       .append = [&](size_t i, std::string& out) { append_set(out, item(i).key, item(i).value, item(i).options); },
       .close = [&](std::string& out) { out += end_of_write(token); },
       .closing = replies_to_end(),
       .closed = [&](std::span<const RespValue> end) { return check_end(token, end); }},
      deadline);
  for (size_t i = 0; i < sent.size(); ++i) {
    if (!answers[i]) {
      results[sent[i]] = std::unexpected(answers[i].error());
    } else if (!answers[i]->is_status("OK")) {
      results[sent[i]] = std::unexpected(foreign("SET was not answered with OK"));
    }
  }
  return timed.end(std::move(results));
}

std::vector<Result<void>> RedisProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  Timed timed(context_.stats, Command::erase_many);
  if (closed_.load(std::memory_order_relaxed)) {
    return timed.end(all_failed<void>(keys.size(), closed().error()));
  }
  const std::string token = next_token();
  const auto answers =
      executor_.run_many({.count = keys.size(),
                          .slot = [&](size_t i) { return slot_of(keys[i]); },
                          .append = [&](size_t i, std::string& out) { append_del(out, keys[i]); },
                          .close = [&](std::string& out) { out += end_of_write(token); },
                          .closing = replies_to_end(),
                          .closed = [&](std::span<const RespValue> end) { return check_end(token, end); },
                          .repeatable = true},
                         deadline);
  std::vector<Result<void>> results;
  results.reserve(keys.size());
  for (const auto& answer : answers) {
    if (!answer) {
      results.push_back(std::unexpected(answer.error()));
    } else if (answer->type == RespType::integer) {
      results.emplace_back();
    } else {
      results.push_back(std::unexpected(foreign("DEL was not answered with a number")));
    }
  }
  return timed.end(std::move(results));
}

Result<void> RedisProvider::put_atomic(std::span<const PutItem> items, Deadline deadline) {
  Timed timed(context_.stats, Command::put_atomic);
  if (capabilities_.atomic_put == 0) {
    return timed.end<void>(fail(ErrorCode::not_supported, "in a redis cluster put_atomic needs redis.hash_tag"));
  }
  if (items.size() > capabilities_.atomic_put) {
    return timed.end<void>(fail(ErrorCode::too_large, fmt::format("{} items; at most 8 go together", items.size())));
  }
  if (items.empty()) return timed.end(Result<void>{});
  for (const PutItem& item : items) {
    if (auto fits = storable(item.key, item.value); !fits) return timed.end(std::move(fits));
  }
  std::string commands;
  append_command(commands, {"MULTI"});
  for (const PutItem& item : items) append_set(commands, item.key, item.value, item.options);
  append_command(commands, {"EXEC"});
  auto answers = write(slot_of(items[0].key), std::move(commands), items.size() + 2, false, deadline);
  if (!answers) return timed.end<void>(std::unexpected(std::move(answers.error())));
  const RespValue& executed = (*answers)[items.size() + 1];
  if (!executed.is_array() || executed.items.size() != items.size()) {
    return timed.end<void>(std::unexpected(foreign("EXEC was not answered with one result an item")));
  }
  for (const RespValue& one : executed.items) {
    if (one.is_error()) return timed.end<void>(std::unexpected(error_of_reply(one.text.view(), "server")));
  }
  return timed.end(Result<void>{});
}

Result<uint64_t> RedisProvider::purge(NodePool& pool, std::string_view prefix, Deadline deadline) {
  // In a pattern these stand for others; the base is the operator's text.
  std::string pattern;
  for (const char c : key_base_ + std::string(prefix)) {
    if (std::string_view("*?[]\\").contains(c)) pattern += '\\';
    pattern += c;
  }
  pattern += '*';
  const auto ask = [&](const std::string& commands, size_t replies) -> Result<std::vector<RespValue>> {
    auto answers = pool.run(commands, replies, deadline, true);
    if (!answers) return answers;
    const auto error = std::ranges::find_if(*answers, [](const RespValue& at) { return at.is_error(); });
    if (error != answers->end()) return std::unexpected(executor_.refused(pool, *error));
    return answers;
  };
  uint64_t erased = 0;
  std::string cursor = "0";
  do {
    if (deadline.expired()) return fail(ErrorCode::timeout, pool.position() + ": not all keys were looked at");
    std::string commands;
    append_command(commands, {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
    const auto pages = ask(commands, 1);
    if (!pages) return std::unexpected(pages.error());
    const RespValue& page = pages->front();
    if (!page.is_array() || page.items.size() != 2 || !page.items[1].is_array())
      return std::unexpected(foreign("SCAN"));
    cursor = std::string(page.items[0].text.view());
    const std::vector<RespValue>& keys = page.items[1].items;
    if (keys.empty()) continue;
    commands.clear();
    // One command a key: in a cluster they are of many slots.
    for (const RespValue& key : keys) append_command(commands, {"UNLINK", key.text.view()});
    const auto unlinked = ask(commands, keys.size());
    if (!unlinked) return std::unexpected(unlinked.error());
    for (const RespValue& one : *unlinked) erased += one.integer > 0 ? 1 : 0;
  } while (cursor != "0");
  return erased;
}

Result<uint64_t> RedisProvider::erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) {
  Timed timed(context_.stats, Command::purge);
  if (closed_.load(std::memory_order_relaxed)) return timed.end<uint64_t>(closed());
  const auto pools = router_->primaries(deadline);
  if (!pools) return timed.end<uint64_t>(std::unexpected(pools.error()));
  uint64_t erased = 0;
  for (const auto& pool : *pools) {
    for (const std::string& prefix : prefixes) {
      const auto of_pool = purge(*pool, prefix, deadline);
      if (!of_pool) return timed.end<uint64_t>(std::unexpected(of_pool.error()));
      erased += *of_pool;
    }
  }
  return timed.end(Result<uint64_t>(erased));
}

Result<void> RedisProvider::health(Deadline deadline) {
  Timed timed(context_.stats, Command::health);
  if (closed_.load(std::memory_order_relaxed)) return timed.end<void>(closed());
  auto pools = router_->primaries(deadline);
  if (!pools) return timed.end<void>(std::unexpected(pools.error()));
  std::string commands;
  append_command(commands, {"PING"});
  for (const auto& pool : *pools) {
    auto answers = pool->run(commands, 1, deadline, true);
    if (!answers) {
      if (router_->clustered()) router_->doubt(*pool);
      return timed.end<void>(std::unexpected(answers.error()));
    }
    if (answers->front().is_error()) {
      return timed.end<void>(std::unexpected(executor_.refused(*pool, answers->front())));
    }
  }
  return timed.end(Result<void>{});
}

std::vector<std::string> RedisProvider::warnings(Deadline deadline) {
  std::vector<std::string> out;
  auto pools = router_->primaries(deadline);
  if (!pools) return out;
  std::string commands;
  append_command(commands, {"INFO", "memory"});
  append_command(commands, {"INFO", "persistence"});
  append_command(commands, {"CONFIG", "GET", "save"});
  for (const auto& pool : *pools) {
    auto answers = pool->run(commands, 3, deadline, true);
    if (!answers) continue;
    const std::string_view memory = (*answers)[0].text.view();
    const std::string server = "redis " + pool->position();
    if ((*answers)[0].is_error()) {
      out.push_back(server + " refuses INFO: every reconnect drops what is cached; allow +info and +role");
      continue;
    }
    if (info_field(memory, "maxmemory") == "0") {
      out.push_back(server + " has no maxmemory: a cache grows until the machine has no memory left");
    } else if (info_field(memory, "maxmemory_policy") == "noeviction") {
      out.push_back(server +
                    " has maxmemory-policy noeviction: when it is full nothing is cached any more; use "
                    "allkeys-lfu or allkeys-lru");
    }
    if (info_field((*answers)[1].text.view(), "aof_enabled") == "1") {
      out.push_back(server + " writes an append-only file, which a cache does not need");
    }
    const RespValue& save = (*answers)[2];
    if (save.is_array() && save.items.size() >= 2 && !save.items[1].text.empty()) {
      out.push_back(server + " saves snapshots (save \"" + save.items[1].text.str() +
                    "\"), which a cache does not need");
    }
  }
  return out;
}

std::vector<ProviderMetric> RedisProvider::metrics() const {
  std::vector<ProviderMetric> out;
  context_.stats.append_to(out);
  size_t connections = 0;
  size_t in_flight = 0;
  if (auto pools = router_->primaries(Deadline::in_ms(0))) {
    for (const auto& pool : *pools) {
      connections += pool->connections();
      in_flight += pool->load();
    }
  }
  out.push_back({"connections", static_cast<double>(connections)});
  out.push_back({"calls_in_flight", static_cast<double>(in_flight)});
  out.push_back({"incarnation_changes_total", static_cast<double>(incarnation_.changes())});
  return out;
}

Result<void> RedisProvider::close(Deadline) {
  if (!closed_.exchange(true)) router_->close();
  return {};
}

}  // namespace ragfs::redis
