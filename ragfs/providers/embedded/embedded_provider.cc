#include "ragfs/providers/embedded/embedded_provider.h"

#include <fmt/format.h>

#include <algorithm>

#include "ragfs/base/random.h"

namespace ragfs {

namespace {

constexpr size_t kPrefetchAhead = 8;
constexpr int kPurgeRounds = 3;
constexpr int64_t kLastPatience_ms = 1'000;  // of a destructor, for what nobody has closed

std::string random_incarnation() { return fmt::format("embedded-{:016x}{:016x}", random_u64(), random_u64()); }

std::string incarnation_of(const SecondTier* second) {
  const std::string of_disks = second == nullptr ? std::string() : second->incarnation();
  return of_disks.empty() ? random_incarnation() : "embedded-" + of_disks;
}

ProviderCapabilities capabilities_of(const MemoryTier& memory, bool disk) {
  return {.native_ttl = true,
          .batch_get = true,
          .batch_put = true,
          .atomic_put = MemoryTier::kMostAtomicItems,
          .by_hash = true,
          .zero_copy = true,
          .enumerates = !disk,  // what lies on a disk would have to be read to be judged
          .outlives_process = disk,
          .max_value_bytes = memory.max_object_bytes() - std::min<uint64_t>(kMaxKeyBytes, memory.max_object_bytes())};
}

std::unexpected<Error> closed() { return fail(ErrorCode::unavailable, "the embedded provider is closed"); }

}  // namespace

Result<std::unique_ptr<EmbeddedProvider>> EmbeddedProvider::create(const EmbeddedConfig& config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  std::unique_ptr<SecondTier> second;
  if (config.disk.has_value()) {
    SecondTierConfig disk = *config.disk;
    disk.clock = config.clock;
    auto opened = SecondTier::open(std::move(disk), config.log);
    if (!opened) return std::unexpected(opened.error());
    second = std::move(*opened);
  }
  Result<std::unique_ptr<MemoryTier>> memory = MemoryTier::create(config.memory(second.get()));
  if (!memory) return std::unexpected(memory.error());
  if (second != nullptr) second->attach(**memory);
  return std::unique_ptr<EmbeddedProvider>(new EmbeddedProvider(std::move(second), std::move(*memory), *config.clock));
}

EmbeddedProvider::~EmbeddedProvider() { (void)EmbeddedProvider::close(Deadline::in_ms(kLastPatience_ms)); }

EmbeddedProvider::EmbeddedProvider(std::unique_ptr<SecondTier> second, std::unique_ptr<MemoryTier> memory,
                                   const Clock& clock)
    : second_(std::move(second)),
      memory_(std::move(memory)),
      clock_(clock),
      capabilities_(capabilities_of(*memory_, second_ != nullptr)),
      incarnation_(incarnation_of(second_.get())) {}

std::optional<SecondTier::Change> EmbeddedProvider::change(const CacheKey& key, Deadline deadline) {
  if (second_ == nullptr) return std::nullopt;
  return std::optional<SecondTier::Change>(std::in_place, *second_, key.hash(), deadline);
}

MemoryTier::Item EmbeddedProvider::item_for(const CacheKey& key, const ValueParts& value,
                                            const PutOptions& options) const {
  return {.key = key.text(),
          .hash = key.hash(),
          .head = value.header,
          .tail = value.payload,
          .options = {.expires_at_ns = options.expires() ? clock_.monotonic_ns() + options.ttl_ms * 1'000'000 : 0,
                      .preferred = options.preferred}};
}

void EmbeddedProvider::prefetch(uint64_t key_hash) const noexcept { memory_->prefetch(key_hash); }

GetResult EmbeddedProvider::get(const CacheKey& key, Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  std::optional<Bytes> found = memory_->get(key.text(), key.hash());
  if (found.has_value() || second_ == nullptr) return found;
  return second_->get(key.text(), key.hash(), deadline);
}

Bytes EmbeddedProvider::get_by_hash(uint64_t key_hash) noexcept {
  return closed_.load(std::memory_order_relaxed) ? Bytes() : memory_->get_by_hash(key_hash);
}

Result<void> EmbeddedProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                   Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  Result<void> stored;
  {
    const auto change_here = change(key, deadline);
    stored = memory_->put(item_for(key, value, options));
  }
  if (stored && second_ != nullptr) second_->was_put(key.text(), key.hash());
  return stored;
}

Result<void> EmbeddedProvider::erase(const CacheKey& key, Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  const auto change_here = change(key, deadline);
  memory_->erase(key.text(), key.hash());
  return {};
}

std::vector<GetResult> EmbeddedProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  std::vector<GetResult> results;
  results.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kPrefetchAhead < keys.size()) memory_->prefetch(keys[i + kPrefetchAhead].hash());
    results.push_back(get(keys[i], deadline));
  }
  return results;
}

Result<void> EmbeddedProvider::put_atomic(std::span<const PutItem> items, Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  std::vector<SecondTier::Change> changes;
  if (second_ != nullptr) {
    changes.reserve(items.size());
    for (const PutItem& item : items) changes.emplace_back(*second_, item.key.hash(), deadline);
  }
  std::vector<MemoryTier::Item> all;
  all.reserve(items.size());
  for (const PutItem& item : items) all.push_back(item_for(item.key, item.value, item.options));
  Result<void> stored = memory_->put_atomic(all);
  changes.clear();
  for (const PutItem& item : items) {
    if (stored && second_ != nullptr) second_->was_put(item.key.text(), item.key.hash());
  }
  return stored;
}

Result<uint64_t> EmbeddedProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                                            Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  if (!capabilities_.enumerates) return CacheProvider::erase_if(covered, deadline);
  return memory_->erase_if(covered, deadline);
}

Result<uint64_t> EmbeddedProvider::erase_prefixes(std::span<const std::string> prefixes, Deadline deadline) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  const auto covered = [&](std::string_view key, std::string_view) { return begins_with_any(key, prefixes); };
  auto in_memory = memory_->erase_if(covered, deadline);
  if (!in_memory || second_ == nullptr) return in_memory;
  uint64_t erased = *in_memory;
  // What readers brought from disk to memory meanwhile may have gone back to disk: until memory had none.
  for (int round = 0; round < kPurgeRounds && (round == 0 || *in_memory > 0); ++round) {
    const auto on_disk = second_->purge(prefixes, deadline);
    if (!on_disk) return on_disk;
    in_memory = memory_->erase_if(covered, deadline);
    if (!in_memory) return in_memory;
    erased += *on_disk + *in_memory;
  }
  return erased;
}

Result<void> EmbeddedProvider::health(Deadline /*deadline*/) {
  if (closed_.load(std::memory_order_relaxed)) return closed();
  return {};
}

Result<void> EmbeddedProvider::close(Deadline deadline) {
  if (closed_.exchange(true)) return {};
  if (second_ != nullptr) second_->close(deadline);
  memory_->clear();
  return {};
}

std::vector<std::string> EmbeddedProvider::warnings(Deadline /*deadline*/) {
  return second_ == nullptr ? std::vector<std::string>() : second_->warnings();
}

std::vector<ProviderMetric> EmbeddedProvider::metrics() const {
  const MemoryTierStats stats = memory_->stats();
  const auto figure = [](const char* name, uint64_t value) { return ProviderMetric{name, static_cast<double>(value)}; };
  std::vector<ProviderMetric> all = {figure("dram_capacity_bytes", stats.capacity_bytes),
                                     figure("dram_bytes", stats.resident_bytes),
                                     figure("dram_index_bytes", stats.index_bytes),
                                     figure("dram_detached_bytes", stats.detached_bytes),
                                     figure("dram_objects", stats.objects),
                                     figure("dram_hits_total", stats.hits),
                                     figure("dram_misses_total", stats.misses),
                                     figure("dram_expired_total", stats.expired),
                                     figure("dram_inserts_total", stats.inserts),
                                     figure("dram_updates_total", stats.updates),
                                     figure("dram_erases_total", stats.erases),
                                     figure("dram_evictions_total", stats.evictions),
                                     figure("dram_share_evictions_total", stats.share_evictions),
                                     figure("dram_rejected_too_large_total", stats.rejected_too_large),
                                     figure("dram_rejected_full_total", stats.rejected_full),
                                     figure("dram_relocations_total", stats.relocations)};
  if (second_ == nullptr) return all;
  for (NamedCount& count : second_->metrics()) {
    all.push_back({std::move(count.name), static_cast<double>(count.value), std::move(count.labels)});
  }
  return all;
}

}  // namespace ragfs
