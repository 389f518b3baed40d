// ScriptedProvider: a provider over a plain map that fails on command.
//
// For: tests of what stands above a provider. Rules (script.h) make calls fail, wait, get lost, land late or be
// dropped; capabilities can be set one by one; the stored state can be looked at, changed, saved and brought back (a
// failover to an older replica). Not for: production, or measuring.
//
// Without rules it keeps the provider contract. TTL is counted on the clock it was given; deadlines on the system's.
// Thread-safety: all methods may be called from any thread, but set_capabilities() only while no other call runs.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/base/clock.h"
#include "ragfs/base/sync.h"
#include "ragfs/cache/incarnation_listener.h"
#include "ragfs/cache/provider.h"
#include "ragfs/providers/scripted/script.h"

namespace ragfs {

class ScriptedProvider final : public CacheProvider {
 public:
  using Op = scripted::Op;
  using Action = scripted::Action;
  using Rule = scripted::Rule;
  using RuleId = uint64_t;

  struct Stored {
    Bytes value;
    int64_t expires_at_ns = 0;  // 0 = never
    bool preferred = false;
  };
  using State = std::map<std::string, Stored, std::less<>>;

  // Every optional ability on: native_ttl, both batches, atomic_put 8, zero_copy, enumerates; not may_resurrect.
  static ProviderCapabilities all_capabilities();

  explicit ScriptedProvider(const Clock& clock = Clock::system());
  ~ScriptedProvider() override;

  // --- the script ---
  RuleId add_rule(Rule rule);
  void remove_rule(RuleId id);
  void clear_rules();
  // How often a rule fired; also after it ran out, until it is removed.
  uint64_t fired(RuleId id) const;
  // Everything answers unavailable until set to false. Comes before all rules.
  void set_down(bool down) { down_ = down; }
  void set_capabilities(const ProviderCapabilities& capabilities) { capabilities_ = capabilities; }

  // --- writes that answered and did not happen yet, oldest first (a put_atomic is one) ---
  size_t pending() const;
  // Applies the pending write at `index`; false when there is none.
  bool land(size_t index = 0);
  // Applies all; how many.
  size_t land_all();

  // --- the engine's life ---
  // A new incarnation; the objects stay (combine with wipe() or restore(), which come first: who watches is told before
  // this returns).
  void new_incarnation();
  State snapshot() const;
  void restore(State state);
  void wipe() { restore({}); }

  // --- looking and changing behind the caller's back; no rule, no count ---
  std::optional<std::string> peek(std::string_view key) const;
  void poke(std::string_view key, std::string_view value);
  bool poke_erase(std::string_view key);
  std::vector<std::string> keys() const;
  // Keys put with PutOptions::preferred.
  std::vector<std::string> preferred_keys() const;

  // --- counters ---
  // Calls that went to the engine. A batch counts as one for each max_batch_keys begun, or, without its capability,
  // as single calls.
  uint64_t calls(Op op) const { return calls_[static_cast<size_t>(op)].load(); }
  uint64_t total_calls() const;
  // How often a single Op (get, put, erase) touched this key, batches and put_atomic included.
  uint64_t key_calls(Op op, std::string_view key) const;
  void reset_counters();

  // --- CacheProvider ---
  std::string_view name() const override { return "scripted"; }
  const ProviderCapabilities& capabilities() const override { return capabilities_; }
  GetResult get(const CacheKey& key, Deadline deadline) override;
  Result<void> put(const CacheKey& key, const ValueParts& value, const PutOptions& options, Deadline deadline) override;
  Result<void> erase(const CacheKey& key, Deadline deadline) override;
  std::vector<GetResult> get_many(std::span<const CacheKey> keys, Deadline deadline) override;
  std::vector<Result<void>> put_many(std::span<const PutItem> items, Deadline deadline) override;
  std::vector<Result<void>> erase_many(std::span<const CacheKey> keys, Deadline deadline) override;
  Result<void> put_atomic(std::span<const PutItem> items, Deadline deadline) override;
  Result<uint64_t> erase_if(const std::function<bool(std::string_view, std::string_view)>& covered,
                            Deadline deadline) override;
  Result<void> health(Deadline deadline) override;
  std::string incarnation() const override;
  void watch_incarnation(std::function<void()> changed) override { listener_.watch(std::move(changed)); }
  Result<void> close(Deadline deadline) override;

 private:
  // A put (value set) or an erase. The TTL begins when it is applied.
  struct Write {
    std::string key;
    std::optional<Bytes> value;
    PutOptions options;
  };
  using Writes = std::vector<Write>;
  struct Pending {
    Writes writes;
    int64_t land_at_ns;  // on clock_; the largest int64 = on demand
  };
  struct ActiveRule {
    RuleId id;
    Rule rule;
    uint64_t seen = 0;
    uint64_t fired = 0;
  };

  // The rule that decides, already counted; nullopt = do what an engine should.
  std::optional<Rule> decide(Op op, std::string_view key);
  // Closed, down, or past the deadline.
  Result<void> admit(Deadline deadline) const;
  void count(Op op, uint64_t calls = 1) { calls_[static_cast<size_t>(op)] += calls; }
  void count_key(Op op, std::string_view key);
  uint64_t round_trips(size_t keys) const;

  // One key's part of a call; `whole` is what a batch's own rule decided for all its keys.
  GetResult get_one(const CacheKey& key, Deadline deadline, const std::optional<Rule>& whole);
  Result<void> write(Op op, Writes writes, Deadline deadline, const std::optional<Rule>& whole);
  // The rule of a batch as a whole: its hook and delay are spent here, once; what is left is for each key.
  std::optional<Rule> decide_batch(Op op, Deadline deadline);
  // Waits out a rule's delay; false when the deadline came first.
  bool wait_delay(int64_t delay_ms, Deadline deadline);
  void apply(const Writes& writes) RAGFS_REQUIRES(mutex_);
  void defer(Writes writes, std::optional<int64_t> after_ms);
  // Applies pending writes whose time has come.
  void land_due() RAGFS_REQUIRES(mutex_);
  std::optional<Bytes> look_up(std::string_view key) RAGFS_REQUIRES(mutex_);
  Result<Write> make_write(const PutItem& item) const;

  const Clock& clock_;
  ProviderCapabilities capabilities_ = all_capabilities();
  std::atomic<bool> down_{false};
  std::atomic<bool> closed_{false};
  std::array<std::atomic<uint64_t>, scripted::kOpCount> calls_{};

  mutable Mutex mutex_;
  CondVar closing_;
  State objects_ RAGFS_GUARDED_BY(mutex_);
  std::deque<Pending> pending_ RAGFS_GUARDED_BY(mutex_);
  std::vector<ActiveRule> rules_ RAGFS_GUARDED_BY(mutex_);
  RuleId next_rule_ RAGFS_GUARDED_BY(mutex_) = 1;
  uint64_t incarnation_ RAGFS_GUARDED_BY(mutex_) = 1;
  IncarnationListener listener_;
  std::map<std::pair<Op, std::string>, uint64_t> key_calls_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs
