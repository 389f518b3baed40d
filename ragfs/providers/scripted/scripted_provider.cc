#include "ragfs/providers/scripted/scripted_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

namespace ragfs {

namespace {

constexpr int64_t kOnDemand = std::numeric_limits<int64_t>::max();

Bytes join(const ValueParts& value) {
  ByteBuffer buffer(value.size());
  if (!value.header.empty()) std::memcpy(buffer.data(), value.header.data(), value.header.size());
  if (!value.payload.empty()) {
    std::memcpy(buffer.data() + value.header.size(), value.payload.data(), value.payload.size());
  }
  return std::move(buffer).take(value.size());
}

void run_hook(const std::function<void(std::string_view)>& hook, std::string_view key) {
  if (hook) hook(key);
}

}  // namespace

ProviderCapabilities ScriptedProvider::all_capabilities() {
  return {.native_ttl = true,
          .batch_get = true,
          .batch_put = true,
          .atomic_put = 8,
          .zero_copy = true,
          .enumerates = true,
          .max_value_bytes = size_t{64} << 20};
}

ScriptedProvider::ScriptedProvider(const Clock& clock) : clock_(clock) {}
ScriptedProvider::~ScriptedProvider() = default;

// --- the script ---

ScriptedProvider::RuleId ScriptedProvider::add_rule(Rule rule) {
  const MutexLock lock(mutex_);
  rules_.push_back({next_rule_, std::move(rule)});
  return next_rule_++;
}

void ScriptedProvider::remove_rule(RuleId id) {
  const MutexLock lock(mutex_);
  std::erase_if(rules_, [id](const ActiveRule& active) { return active.id == id; });
}

void ScriptedProvider::clear_rules() {
  const MutexLock lock(mutex_);
  rules_.clear();
}

uint64_t ScriptedProvider::fired(RuleId id) const {
  const MutexLock lock(mutex_);
  for (const ActiveRule& active : rules_) {
    if (active.id == id) return active.fired;
  }
  return 0;
}

std::optional<ScriptedProvider::Rule> ScriptedProvider::decide(Op op, std::string_view key) {
  const MutexLock lock(mutex_);
  for (ActiveRule& active : rules_) {
    const Rule& rule = active.rule;
    if (rule.op.has_value() && *rule.op != op) continue;
    if (!key.starts_with(rule.key_prefix)) continue;
    if (rule.times.has_value() && active.fired >= *rule.times) continue;
    if (active.seen++ < rule.skip) continue;
    ++active.fired;
    return rule;
  }
  return std::nullopt;
}

// --- pending writes ---

size_t ScriptedProvider::pending() const {
  const MutexLock lock(mutex_);
  return pending_.size();
}

bool ScriptedProvider::land(size_t index) {
  const MutexLock lock(mutex_);
  if (index >= pending_.size()) return false;
  const auto at = pending_.begin() + static_cast<std::ptrdiff_t>(index);
  apply(at->writes);
  pending_.erase(at);
  return true;
}

size_t ScriptedProvider::land_all() {
  const MutexLock lock(mutex_);
  const size_t landed = pending_.size();
  for (const Pending& one : pending_) apply(one.writes);
  pending_.clear();
  return landed;
}

void ScriptedProvider::defer(Writes writes, std::optional<int64_t> after_ms) {
  const int64_t at_ns = after_ms.has_value() ? clock_.monotonic_ns() + *after_ms * 1'000'000 : kOnDemand;
  const MutexLock lock(mutex_);
  pending_.push_back({std::move(writes), at_ns});
}

void ScriptedProvider::land_due() {
  const int64_t now_ns = clock_.monotonic_ns();
  std::erase_if(pending_, [&](const Pending& one) RAGFS_REQUIRES(mutex_) {
    if (one.land_at_ns > now_ns) return false;
    apply(one.writes);
    return true;
  });
}

void ScriptedProvider::apply(const Writes& writes) {
  for (const Write& one : writes) {
    if (!one.value.has_value()) {
      objects_.erase(one.key);
      continue;
    }
    const bool expires = capabilities_.native_ttl && one.options.expires();
    objects_[one.key] = {.value = *one.value,
                         .expires_at_ns = expires ? clock_.monotonic_ns() + one.options.ttl_ms * 1'000'000 : 0,
                         .preferred = one.options.preferred};
  }
}

// --- the engine's life ---

void ScriptedProvider::new_incarnation() {
  {
    const MutexLock lock(mutex_);
    ++incarnation_;
  }
  listener_.tell();
}

ScriptedProvider::State ScriptedProvider::snapshot() const {
  const MutexLock lock(mutex_);
  return objects_;
}

void ScriptedProvider::restore(State state) {
  const MutexLock lock(mutex_);
  objects_ = std::move(state);
}

std::string ScriptedProvider::incarnation() const {
  const MutexLock lock(mutex_);
  return fmt::format("scripted-{}", incarnation_);
}

Result<void> ScriptedProvider::close(Deadline /*deadline*/) {
  closed_ = true;
  const MutexLock lock(mutex_);
  closing_.notify_all();
  return {};
}

// --- looking behind the caller's back ---

std::optional<std::string> ScriptedProvider::peek(std::string_view key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second.value.str();
}

void ScriptedProvider::poke(std::string_view key, std::string_view value) {
  const MutexLock lock(mutex_);
  objects_[std::string(key)] = {.value = Bytes::copy(value)};
}

bool ScriptedProvider::poke_erase(std::string_view key) {
  const MutexLock lock(mutex_);
  return objects_.erase(std::string(key)) != 0;
}

std::vector<std::string> ScriptedProvider::keys() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [key, stored] : objects_) result.push_back(key);
  return result;
}

std::vector<std::string> ScriptedProvider::preferred_keys() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [key, stored] : objects_) {
    if (stored.preferred) result.push_back(key);
  }
  return result;
}

// --- counters ---

uint64_t ScriptedProvider::total_calls() const {
  uint64_t sum = 0;
  for (const auto& calls : calls_) sum += calls.load();
  return sum;
}

uint64_t ScriptedProvider::key_calls(Op op, std::string_view key) const {
  const MutexLock lock(mutex_);
  const auto found = key_calls_.find({op, std::string(key)});
  return found == key_calls_.end() ? 0 : found->second;
}

void ScriptedProvider::reset_counters() {
  for (auto& calls : calls_) calls = 0;
  const MutexLock lock(mutex_);
  key_calls_.clear();
}

void ScriptedProvider::count_key(Op op, std::string_view key) {
  const MutexLock lock(mutex_);
  ++key_calls_[{op, std::string(key)}];
}

uint64_t ScriptedProvider::round_trips(size_t keys) const {
  const size_t batch = std::max<size_t>(capabilities_.max_batch_keys, 1);
  return (keys + batch - 1) / batch;
}

// --- one call ---

Result<void> ScriptedProvider::admit(Deadline deadline) const {
  if (closed_) return fail(ErrorCode::unavailable, "the scripted provider is closed");
  if (down_) return fail(ErrorCode::unavailable, "the scripted provider is down");
  if (deadline.expired()) return fail(ErrorCode::timeout, "the deadline had passed before the call");
  return {};
}

bool ScriptedProvider::wait_delay(int64_t delay_ms, Deadline deadline) {
  if (delay_ms <= 0) return true;
  const Deadline until = Deadline::in_ms(delay_ms);
  const Deadline earlier = Deadline::earlier(until, deadline);
  const MutexLock lock(mutex_);
  while (!closed_ && closing_.wait_until(mutex_, earlier)) {
  }
  return !closed_ && until.at_monotonic_ns() <= deadline.at_monotonic_ns();
}

std::optional<Bytes> ScriptedProvider::look_up(std::string_view key) {
  land_due();
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  const Stored& stored = found->second;
  if (stored.expires_at_ns != 0 && stored.expires_at_ns <= clock_.monotonic_ns()) {
    objects_.erase(found);
    return std::nullopt;
  }
  return capabilities_.zero_copy ? stored.value : Bytes::copy(stored.value.view());
}

std::optional<ScriptedProvider::Rule> ScriptedProvider::decide_batch(Op op, Deadline deadline) {
  if (!admit(deadline)) return std::nullopt;
  std::optional<Rule> rule = decide(op, "");
  if (!rule.has_value()) return rule;
  run_hook(rule->before, "");
  rule->before = nullptr;
  if (!wait_delay(rule->delay_ms, deadline)) {
    rule->land_after_ms = rule->delay_ms;
    rule->action = rule->action == Action::pass ? Action::land_late : Action::lose;
    rule->code = ErrorCode::timeout;
  }
  rule->delay_ms = 0;
  return rule;
}

GetResult ScriptedProvider::get_one(const CacheKey& key, Deadline deadline, const std::optional<Rule>& whole) {
  count_key(Op::get, key.text());
  if (auto admitted = admit(deadline); !admitted) return std::unexpected(admitted.error());
  const std::optional<Rule> rule = whole.has_value() ? whole : decide(Op::get, key.text());
  if (rule.has_value()) {
    run_hook(rule->before, key.text());
    if (!wait_delay(rule->delay_ms, deadline)) return fail(ErrorCode::timeout, "scripted delay");
    switch (rule->action) {
      case Action::pass: break;
      case Action::fail:
      case Action::land_late: return fail(rule->code, "scripted failure");
      case Action::lose: return fail(ErrorCode::timeout, "scripted loss");
      case Action::drop: return std::nullopt;
    }
  }
  std::optional<Bytes> value;
  {
    const MutexLock lock(mutex_);
    value = look_up(key.text());
  }
  if (rule.has_value()) run_hook(rule->after, key.text());
  return value;
}

Result<void> ScriptedProvider::write(Op op, Writes writes, Deadline deadline, const std::optional<Rule>& whole) {
  for (const Write& one : writes) count_key(one.value.has_value() ? Op::put : Op::erase, one.key);
  if (auto admitted = admit(deadline); !admitted) return admitted;
  const std::string first_key = writes.empty() ? "" : writes.front().key;
  const std::optional<Rule> rule = whole.has_value() ? whole : decide(op, first_key);
  if (rule.has_value()) {
    run_hook(rule->before, first_key);
    if (!wait_delay(rule->delay_ms, deadline)) {
      // The engine is still at work: what it was asked to do happens when it gets there.
      if (rule->action == Action::pass && !closed_) defer(std::move(writes), rule->delay_ms);
      return fail(ErrorCode::timeout, "scripted delay");
    }
    switch (rule->action) {
      case Action::pass: break;
      case Action::fail: return fail(rule->code, "scripted failure");
      case Action::lose: return fail(ErrorCode::timeout, "scripted loss");
      case Action::land_late:
        defer(std::move(writes), rule->land_after_ms);
        return fail(rule->code, "scripted late landing");
      case Action::drop: return {};
    }
  }
  {
    const MutexLock lock(mutex_);
    land_due();
    apply(writes);
  }
  if (rule.has_value()) run_hook(rule->after, first_key);
  return {};
}

Result<ScriptedProvider::Write> ScriptedProvider::make_write(const PutItem& item) const {
  if (item.key.text().empty()) return fail(ErrorCode::invalid_argument, "empty key");
  if (item.value.size() > capabilities_.max_value_bytes) {
    return fail(ErrorCode::too_large,
                fmt::format("{} bytes, at most {} are taken", item.value.size(), capabilities_.max_value_bytes));
  }
  return Write{std::string(item.key.text()), join(item.value), item.options};
}

// --- CacheProvider ---

GetResult ScriptedProvider::get(const CacheKey& key, Deadline deadline) {
  count(Op::get);
  return get_one(key, deadline, std::nullopt);
}

Result<void> ScriptedProvider::put(const CacheKey& key, const ValueParts& value, const PutOptions& options,
                                   Deadline deadline) {
  count(Op::put);
  Result<Write> one = make_write({key, value, options});
  if (!one) return std::unexpected(one.error());
  Writes writes;
  writes.push_back(std::move(*one));
  return write(Op::put, std::move(writes), deadline, std::nullopt);
}

Result<void> ScriptedProvider::erase(const CacheKey& key, Deadline deadline) {
  count(Op::erase);
  return write(Op::erase, {Write{std::string(key.text()), std::nullopt, {}}}, deadline, std::nullopt);
}

std::vector<GetResult> ScriptedProvider::get_many(std::span<const CacheKey> keys, Deadline deadline) {
  if (!capabilities_.batch_get) return CacheProvider::get_many(keys, deadline);
  count(Op::get_many, round_trips(keys.size()));
  const std::optional<Rule> whole = decide_batch(Op::get_many, deadline);
  std::vector<GetResult> results;
  results.reserve(keys.size());
  for (const CacheKey& key : keys) {
    results.push_back(get_one(key, deadline, whole));
  }
  return results;
}

std::vector<Result<void>> ScriptedProvider::put_many(std::span<const PutItem> items, Deadline deadline) {
  if (!capabilities_.batch_put) return CacheProvider::put_many(items, deadline);
  count(Op::put_many, round_trips(items.size()));
  const std::optional<Rule> whole = decide_batch(Op::put_many, deadline);
  std::vector<Result<void>> results;
  results.reserve(items.size());
  for (const PutItem& item : items) {
    Result<Write> one = make_write(item);
    if (!one) {
      results.emplace_back(std::unexpected(one.error()));
      continue;
    }
    Writes writes;
    writes.push_back(std::move(*one));
    results.push_back(write(Op::put, std::move(writes), deadline, whole));
  }
  return results;
}

std::vector<Result<void>> ScriptedProvider::erase_many(std::span<const CacheKey> keys, Deadline deadline) {
  if (!capabilities_.batch_put) return CacheProvider::erase_many(keys, deadline);
  count(Op::erase_many, round_trips(keys.size()));
  const std::optional<Rule> whole = decide_batch(Op::erase_many, deadline);
  std::vector<Result<void>> results;
  results.reserve(keys.size());
  for (const CacheKey& key : keys) {
    results.push_back(write(Op::erase, {Write{std::string(key.text()), std::nullopt, {}}}, deadline, whole));
  }
  return results;
}

Result<void> ScriptedProvider::put_atomic(std::span<const PutItem> items, Deadline deadline) {
  if (capabilities_.atomic_put == 0) return CacheProvider::put_atomic(items, deadline);
  count(Op::put_atomic);
  if (items.size() > capabilities_.atomic_put) {
    return fail(ErrorCode::too_large,
                fmt::format("{} items, at most {} are put at once", items.size(), capabilities_.atomic_put));
  }
  Writes writes;
  for (const PutItem& item : items) {
    Result<Write> one = make_write(item);
    if (!one) return std::unexpected(one.error());
    writes.push_back(std::move(*one));
  }
  return write(Op::put_atomic, std::move(writes), deadline, std::nullopt);
}

Result<uint64_t> ScriptedProvider::erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                                            Deadline deadline) {
  if (!capabilities_.enumerates) return CacheProvider::erase_if(covered, deadline);
  count(Op::erase_if);
  if (auto admitted = admit(deadline); !admitted) return std::unexpected(admitted.error());
  const std::optional<Rule> rule = decide(Op::erase_if, "");
  if (rule.has_value()) {
    run_hook(rule->before, "");
    if (!wait_delay(rule->delay_ms, deadline)) return fail(ErrorCode::timeout, "scripted delay");
    if (rule->action == Action::drop) return uint64_t{0};
    if (rule->action == Action::lose) return fail(ErrorCode::timeout, "scripted loss");
    if (rule->action != Action::pass) return fail(rule->code, "scripted failure");
  }
  // `covered` runs under no lock, so what was put meanwhile is told apart by its bytes and stays.
  uint64_t erased = 0;
  for (const auto& [key, stored] : snapshot()) {
    if (!covered(key, stored.value.view())) continue;
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key);
    if (found == objects_.end() || found->second.value.data() != stored.value.data()) continue;
    objects_.erase(found);
    ++erased;
  }
  if (rule.has_value()) run_hook(rule->after, "");
  return erased;
}

Result<void> ScriptedProvider::health(Deadline deadline) {
  count(Op::health);
  if (auto admitted = admit(deadline); !admitted) return admitted;
  const std::optional<Rule> rule = decide(Op::health, "");
  if (!rule.has_value()) return {};
  run_hook(rule->before, "");
  if (!wait_delay(rule->delay_ms, deadline)) return fail(ErrorCode::timeout, "scripted delay");
  switch (rule->action) {
    case Action::pass:
    case Action::drop: return {};
    case Action::lose: return fail(ErrorCode::timeout, "scripted loss");
    case Action::fail:
    case Action::land_late: break;
  }
  return fail(rule->code, "scripted failure");
}

}  // namespace ragfs
