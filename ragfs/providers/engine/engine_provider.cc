#include "ragfs/providers/engine/engine_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ragfs/engine/ragfs_engine_v1.h"
#include "ragfs/providers/engine/direct_channel.h"
#include "ragfs/providers/engine/host_channel.h"

namespace ragfs::engine {
namespace {

constexpr uint64_t kFirstGuessBytes = 64 << 10;
constexpr int kAtomicTries = 3;
constexpr uint64_t kLeastValueBytes = 4096;  // as EngineConfig's max_value_bytes

ErrorCode code_of(int32_t status) {
  switch (status) {
    case RAGFS_ENGINE_TIMEOUT: return ErrorCode::timeout;
    case RAGFS_ENGINE_INVALID_ARGUMENT: return ErrorCode::invalid_argument;
    case RAGFS_ENGINE_INVALID_DATA: return ErrorCode::invalid_data;
    case RAGFS_ENGINE_TOO_LARGE: return ErrorCode::too_large;
    case RAGFS_ENGINE_FULL: return ErrorCode::full;
    case RAGFS_ENGINE_NOT_SUPPORTED: return ErrorCode::not_supported;
    case RAGFS_ENGINE_UNAVAILABLE: return ErrorCode::unavailable;
    default: return ErrorCode::internal;
  }
}

bool is_key(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '_' ||
           c == '-';
  });
}

}  // namespace

struct EngineProvider::Batch {
  std::vector<std::string> keys;   // as they are stored, each once
  std::vector<std::string> seals;  // of puts
  std::vector<uint64_t> hashes;
  std::vector<ChannelItem> items;  // of `keys`
  std::unordered_map<std::string_view, size_t> places;

  explicit Batch(size_t most) {  // nothing may move: items and places refer to keys and seals
    keys.reserve(most);
    seals.reserve(most);
    hashes.reserve(most);
    items.reserve(most);
  }
  // The place of a key's item, which is made when it is new.
  size_t add(std::string key, uint64_t hash) {
    if (const auto found = places.find(key); found != places.end()) return found->second;
    keys.push_back(std::move(key));
    seals.emplace_back();
    hashes.push_back(hash);
    items.push_back({.key = keys.back()});
    places.emplace(keys.back(), items.size() - 1);
    return items.size() - 1;
  }
  void set_value(size_t at, SealKind kind, const ValueParts& value, const PutOptions& options) {
    seals[at] = make_seal(kind, keys[at], value.header, value.payload);
    items[at].parts = {seals[at], value.header, value.payload};
    items[at].ttl_ms = options.expires() ? options.ttl_ms : 0;
    items[at].preferred = options.preferred;
  }
};

Result<std::unique_ptr<EngineProvider>> EngineProvider::create(EngineConfig config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  std::unique_ptr<EngineProvider> provider(new EngineProvider(std::move(config)));  // NOLINT: a private constructor
  auto started = provider->channel_->wait_for_start(Deadline::in_ms(provider->config_.start_wait_ms));
  if (!started) return std::unexpected(started.error());
  if (auto usable = provider->set_capabilities(); !usable) return std::unexpected(usable.error());
  return provider;
}

EngineProvider::EngineProvider(EngineConfig config) : config_(std::move(config)), incarnation_(config_.name) {
  if (config_.in_process) {
    channel_ = std::make_unique<DirectChannel>(config_, incarnation_);
  } else {
    channel_ = std::make_unique<HostChannel>(config_, incarnation_, stats_);
  }
}

EngineProvider::~EngineProvider() = default;

Result<void> EngineProvider::set_capabilities() {
  const Abilities can = channel_->abilities();
  if (can.max_value_bytes < kLeastValueBytes) {
    return fail(ErrorCode::config, fmt::format("{}: the engine takes values of {} bytes; {} are needed at least",
                                               config_.name, can.max_value_bytes, kLeastValueBytes));
  }
  capabilities_.native_ttl = can.native_ttl;
  capabilities_.batch_get = true;
  capabilities_.batch_put = true;
  capabilities_.atomic_put = can.atomic_put;
  capabilities_.may_resurrect = can.may_resurrect;
  capabilities_.outlives_process = can.outlives_process;
  capabilities_.max_value_bytes = std::min(can.max_value_bytes, config_.max_value_bytes) - kSealBytes;
  seal_kind_ = can.whole_values ? SealKind::key_and_size : SealKind::all_bytes;
  return {};
}

std::string EngineProvider::stored_key(const CacheKey& key) const {
  if (config_.key_prefix.empty()) return std::string(key.text());
  return fmt::format("{}:{}", config_.key_prefix, key.text());
}

Result<void> EngineProvider::check(const CacheKey& key, const ValueParts* value) const {
  if (!is_key(key.text())) {
    return fail(ErrorCode::invalid_argument, "a key has 1 to 128 characters of [A-Za-z0-9:_-]");
  }
  if (value != nullptr && value->size() > capabilities_.max_value_bytes) {
    return fail(ErrorCode::too_large, fmt::format("a value of {} bytes; {} takes {}", value->size(), config_.name,
                                                  capabilities_.max_value_bytes));
  }
  return {};
}

uint64_t EngineProvider::expected_bytes(uint64_t key_hash) const {
  const uint8_t order = expected_[key_hash % expected_.size()].load(std::memory_order_relaxed);
  const uint64_t guess = order == 0 ? kFirstGuessBytes : uint64_t{1} << order;
  return std::min(guess, capabilities_.max_value_bytes + kSealBytes);
}

void EngineProvider::expect_bytes(uint64_t key_hash, uint64_t size) {
  const auto order = static_cast<uint8_t>(std::bit_width(std::max<uint64_t>(size, 8192) - 1));
  std::atomic<uint8_t>& kept = expected_[key_hash % expected_.size()];
  if (kept.load(std::memory_order_relaxed) != order) kept.store(order, std::memory_order_relaxed);
}

Error EngineProvider::error_of(const ChannelItem& item, std::string_view message) const {
  const auto status = static_cast<size_t>(item.status);
  std::string text = fmt::format("{}: {}", config_.name,
                                 status < kStatusNames.size() ? kStatusNames[status] : std::string_view("internal"));
  if (item.engine_code != 0) text += fmt::format(" (its code {})", item.engine_code);
  if (!message.empty()) text += fmt::format(": {}", message);
  return Error{code_of(item.status), std::move(text)};
}

Result<void> EngineProvider::answer_of(const ChannelItem& item, std::string_view message) {
  stats_.add_status(item.status);
  if (item.status == RAGFS_ENGINE_OK) return {};
  return std::unexpected(error_of(item, message));
}

GetResult EngineProvider::get(const CacheKey& key, Deadline deadline) {
  return std::move(get_many(std::span(&key, 1), deadline).front());
}

Result<void> EngineProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                 Deadline deadline) {
  const PutItem item{key, value, options};
  return std::move(put_many(std::span(&item, 1), deadline).front());
}

Result<void> EngineProvider::erase(const CacheKey& key, Deadline deadline) {
  return std::move(erase_many(std::span(&key, 1), deadline).front());
}

Result<std::string> EngineProvider::fetch(Batch& batch, std::vector<size_t> wanted, Deadline deadline) {
  std::string message;
  for (int round = 0; round < 3 && !wanted.empty(); ++round) {
    std::vector<ChannelItem> items;
    items.reserve(wanted.size());
    for (const size_t at : wanted) items.push_back({.key = batch.keys[at], .capacity = batch.items[at].capacity});
    auto answered = channel_->call(Op::get, items, deadline);
    if (!answered) return answered;
    if (!answered->empty()) message = *std::move(answered);
    std::vector<size_t> larger;
    for (size_t i = 0; i < items.size(); ++i) {
      ChannelItem& item = batch.items[wanted[i]];
      item = std::move(items[i]);
      if (item.status != RAGFS_ENGINE_TOO_SMALL) continue;
      if (item.size > capabilities_.max_value_bytes + kSealBytes) {
        item.status = RAGFS_ENGINE_INVALID_DATA;
        continue;
      }
      expect_bytes(batch.hashes[wanted[i]], item.size);
      item.capacity = std::max(item.size, expected_bytes(batch.hashes[wanted[i]]));
      larger.push_back(wanted[i]);
    }
    stats_.add(Event::repeated_gets, larger.size());
    wanted = std::move(larger);
  }
  return message;
}

std::vector<GetResult> EngineProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  std::vector<GetResult> out(keys.size(), GetResult(std::optional<Bytes>()));
  std::vector<size_t> places(keys.size(), SIZE_MAX);
  Batch batch(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (auto fine = check(keys[i], nullptr); !fine) {
      out[i] = std::unexpected(fine.error());
      continue;
    }
    places[i] = batch.add(stored_key(keys[i]), keys[i].hash());
    batch.items[places[i]].capacity = expected_bytes(keys[i].hash());
  }
  if (batch.items.empty()) return out;
  std::vector<size_t> wanted(batch.items.size());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  Result<std::string> fetched = fetch(batch, wanted, deadline);
  const auto torn = [&](size_t at) {
    return batch.items[at].status == RAGFS_ENGINE_OK && !seal_is_intact(batch.keys[at], batch.items[at].value.view());
  };
  if (fetched) {
    std::erase_if(wanted, [&](size_t at) { return !torn(at); });
    stats_.add(Event::repeated_reads, wanted.size());
    if (!wanted.empty()) fetched = fetch(batch, wanted, deadline);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (places[i] == SIZE_MAX) continue;
    if (!fetched) {
      out[i] = std::unexpected(fetched.error());
      continue;
    }
    const ChannelItem& item = batch.items[places[i]];
    stats_.add_status(item.status);
    if (item.status == RAGFS_ENGINE_MISS) continue;
    if (item.status != RAGFS_ENGINE_OK) {
      out[i] = std::unexpected(error_of(item, *fetched));
    } else if (torn(places[i])) {
      stats_.add(Event::torn_values);
    } else {
      expect_bytes(batch.hashes[places[i]], item.value.size());
      out[i] = std::optional<Bytes>(item.value.slice(kSealBytes));
    }
  }
  return out;
}

std::vector<Result<void>> EngineProvider::put_many(std::span<const PutItem> items, Deadline deadline) {
  std::vector<Result<void>> out(items.size());
  std::vector<size_t> places(items.size(), SIZE_MAX);
  Batch batch(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (auto fine = check(items[i].key, &items[i].value); !fine) {
      out[i] = fine;
      continue;
    }
    places[i] = batch.add(stored_key(items[i].key), items[i].key.hash());
    batch.set_value(places[i], seal_kind_, items[i].value, items[i].options);  // of one key the last counts
    expect_bytes(items[i].key.hash(), items[i].value.size() + kSealBytes);
  }
  if (batch.items.empty()) return out;
  const auto answered = channel_->call(Op::put, batch.items, deadline);
  for (size_t i = 0; i < items.size(); ++i) {
    if (places[i] == SIZE_MAX) continue;
    out[i] = answered ? answer_of(batch.items[places[i]], *answered) : std::unexpected(answered.error());
  }
  return out;
}

std::vector<Result<void>> EngineProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  std::vector<Result<void>> out(keys.size());
  std::vector<size_t> places(keys.size(), SIZE_MAX);
  Batch batch(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (auto fine = check(keys[i], nullptr); !fine) {
      out[i] = fine;
    } else {
      places[i] = batch.add(stored_key(keys[i]), keys[i].hash());
    }
  }
  if (batch.items.empty()) return out;
  const auto answered = channel_->call(Op::erase, batch.items, deadline);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (places[i] == SIZE_MAX) continue;
    out[i] = answered ? answer_of(batch.items[places[i]], *answered) : std::unexpected(answered.error());
  }
  return out;
}

Result<void> EngineProvider::put_atomic(std::span<const PutItem> items, Deadline deadline) {
  const uint32_t most = capabilities_.atomic_put;
  if (most == 0) return fail(ErrorCode::not_supported, fmt::format("{} has no atomic put", config_.name));
  if (items.size() > most) {
    return fail(ErrorCode::too_large, fmt::format("{} values at once; {} takes {}", items.size(), config_.name, most));
  }
  if (items.empty()) return {};
  Batch batch(items.size());
  for (const PutItem& item : items) {
    if (auto fine = check(item.key, &item.value); !fine) return fine;
    batch.set_value(batch.add(stored_key(item.key), item.key.hash()), seal_kind_, item.value, item.options);
    expect_bytes(item.key.hash(), item.value.size() + kSealBytes);
  }
  for (int attempt = 0; attempt < kAtomicTries; ++attempt) {
    std::vector<ChannelItem> erased;
    for (const std::string& key : batch.keys) erased.push_back({.key = key});
    const auto gone = channel_->call(Op::erase, erased, deadline);
    if (!gone) return std::unexpected(gone.error());
    for (const ChannelItem& item : erased) {
      if (auto fine = answer_of(item, *gone); !fine) return fine;
    }
    const auto answered = channel_->call(Op::put_if_absent_tx, batch.items, deadline);
    if (!answered) return std::unexpected(answered.error());
    if (batch.items[0].status == RAGFS_ENGINE_EXISTS) continue;  // somebody put one of them in between
    return answer_of(batch.items[0], *answered);
  }
  return fail(ErrorCode::unavailable, fmt::format("{}: others keep putting the same keys", config_.name));
}

Result<void> EngineProvider::health(Deadline deadline) { return channel_->health(deadline); }

std::vector<std::string> EngineProvider::warnings(Deadline deadline) { return channel_->warnings(deadline); }

std::vector<ProviderMetric> EngineProvider::metrics() const {
  std::vector<ProviderMetric> out;
  channel_->append_metrics(out);
  stats_.append_to(out);
  return out;
}

Result<void> EngineProvider::close(Deadline deadline) { return channel_->close(deadline); }

}  // namespace ragfs::engine
