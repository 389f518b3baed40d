#include "ragfs/cli/stress/faulty_provider.h"

#include <utility>

#include "ragfs/cli/stress/random.h"

namespace ragfs::stress {
namespace {

constexpr int64_t kLateTimeout_ms = 1'000;  // a real engine may hang
constexpr size_t kMostLate = 1024;
constexpr uint32_t kLandOneIn = 16;  // calls

}  // namespace

FaultyProvider::FaultyProvider(std::shared_ptr<CacheProvider> provider, const ProviderFaults& faults,
                               const ProviderCapabilities& capabilities, uint64_t seed)
    : provider_(std::move(provider)), faults_(faults), capabilities_(capabilities), draws_(seed) {
  capabilities_.atomic_put = 0;  // so that each put of a batch has a fate of its own
}

uint32_t FaultyProvider::draw() {
  return static_cast<uint32_t>(Random(draws_.fetch_add(1, std::memory_order_relaxed)).below(1'000'000));
}

FaultyProvider::Fate FaultyProvider::draw_fate() {
  if (!faulty_.load() || faults_.sum() == 0) return Fate::none;
  uint32_t drawn = draw();
  if (drawn >= faults_.sum()) return Fate::none;
  injected_.fetch_add(1, std::memory_order_relaxed);
  if (drawn < faults_.fail) return Fate::fail;
  drawn -= faults_.fail;
  if (drawn < faults_.lose_call) return Fate::lose_call;
  drawn -= faults_.lose_call;
  return drawn < faults_.lose_answer ? Fate::lose_answer : Fate::land_late;
}

void FaultyProvider::wait_a_little() {
  if (!chance(faults_.slow)) return;
  Mutex mutex;
  CondVar never;
  const Deadline until = Deadline::in_ns(static_cast<int64_t>(draw()) % faults_.slow_most_us * 1'000);
  MutexLock lock(mutex);
  while (never.wait_until(mutex, until)) {
  }
}

void FaultyProvider::defer(Late late) {
  MutexLock lock(mutex_);
  if (late_.size() >= kMostLate) late_.pop_front();  // lost for good
  late_.push_back(std::move(late));
  late_count_.store(late_.size());
}

void FaultyProvider::land_one() {
  if (late_count_.load() == 0 || draw() % kLandOneIn != 0) return;
  std::optional<Late> late;
  {
    MutexLock lock(mutex_);
    if (late_.empty()) return;
    late = std::move(late_.front());
    late_.pop_front();
    late_count_.store(late_.size());
  }
  landed_.fetch_add(1, std::memory_order_relaxed);
  if (late->value) {
    (void)provider_->put(late->key, {*late->value, {}}, late->options, Deadline::in_ms(kLateTimeout_ms));
  } else {
    (void)provider_->erase(late->key, Deadline::in_ms(kLateTimeout_ms));
  }
}

void FaultyProvider::remember(const CacheKey& key) {
  if (!capabilities_.may_resurrect || !chance(faults_.resurrect)) return;
  const GetResult old = provider_->get(key, Deadline::in_ms(kLateTimeout_ms));
  if (old && *old) defer({key, (*old)->str(), {}});
}

GetResult FaultyProvider::get(const CacheKey& key, Deadline deadline) {
  land_one();
  wait_a_little();
  const Fate fate = draw_fate();
  if (fate == Fate::fail) return fail(ErrorCode::unavailable, "injected failure");
  if (fate != Fate::none) return fail(ErrorCode::timeout, "injected loss");
  GetResult got = provider_->get(key, deadline);
  wait_a_little();
  if (!capabilities_.zero_copy && got && *got) return Bytes::copy((*got)->view());
  return got;
}

Result<void> FaultyProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                 Deadline deadline) {
  land_one();
  wait_a_little();
  const Fate fate = draw_fate();
  if (fate == Fate::fail) return fail(ErrorCode::full, "injected failure");
  if (fate == Fate::lose_call) return fail(ErrorCode::timeout, "injected loss");
  if (fate == Fate::land_late) {
    defer({key, std::string(value.header) + std::string(value.payload), options});
    return fail(ErrorCode::timeout, "injected delay");
  }
  remember(key);
  Result<void> done = provider_->put(key, value, options, deadline);
  wait_a_little();
  if (fate == Fate::lose_answer) return fail(ErrorCode::timeout, "injected loss of the answer");
  return done;
}

Result<void> FaultyProvider::erase(const CacheKey& key, Deadline deadline) {
  land_one();
  wait_a_little();
  const Fate fate = draw_fate();
  if (fate == Fate::fail) return fail(ErrorCode::unavailable, "injected failure");
  if (fate == Fate::lose_call) return fail(ErrorCode::timeout, "injected loss");
  if (fate == Fate::land_late) {
    defer({key, std::nullopt, {}});
    return fail(ErrorCode::timeout, "injected delay");
  }
  remember(key);
  Result<void> done = provider_->erase(key, deadline);
  wait_a_little();
  if (fate == Fate::lose_answer) return fail(ErrorCode::timeout, "injected loss of the answer");
  return done;
}

std::vector<GetResult> FaultyProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  return injects() ? CacheProvider::get_many(keys, deadline) : provider_->get_many(keys, deadline);
}

std::vector<Result<void>> FaultyProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  return injects() ? CacheProvider::erase_many(keys, deadline) : provider_->erase_many(keys, deadline);
}

Result<uint64_t> FaultyProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                                          Deadline deadline) {
  wait_a_little();
  if (draw_fate() != Fate::none) return fail(ErrorCode::unavailable, "injected failure");
  return provider_->erase_if(covered, deadline);
}

}  // namespace ragfs::stress
