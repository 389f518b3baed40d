// Steps: the protocol as a set of steps. From one state, every step that some actor may take next.
//
// One file an actor: reader_steps.cc (3.3, 3.4, 5), writer_steps.cc (3.2), settle_steps.cc (3.5), process_steps.cc
// (3.6), environment_steps.cc (what the provider, the backend and the clock on the wall do by themselves).
//
// What is one step. A step changes what others can see at most once, with these mergers (docs/model.md defends them):
// a read's start and its first lookup; the provider's effect of a call and its return; registering a fill and taking
// its start value, which the code does under one lock; a leader's and its followers' deliveries with the backend read.
// Property. A read gives no version older than Key::floor was when the read started. The floor is the backend's
// version (linearisable: also reads that bypass the cache never see the past again); for keys that only have the base
// claim it is the newest version whose mutation has returned, and for edits behind the cache the one that is older
// than `revalidate`.
// Thread-safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/model/rule_set.h"
#include "tests/model/state.h"
#include "tests/model/world.h"

namespace ragfs::model {

// The states after one step, in a fixed order.
class Successors {
 public:
  explicit Successors(bool with_words) : with_words_(with_words) {}

  void clear() {
    states.clear();
    words.clear();
    stale_at = kNone;
  }
  // A copy of `from` to be changed; the reference lives until the next add.
  State& add(const State& from) {
    states.push_back(from);
    if (with_words_) words.emplace_back();
    return states.back();
  }
  void drop_last() {
    states.pop_back();
    if (with_words_) words.pop_back();
  }
  // Says in words what led to the last state; `make` returns a string and runs only for a trace.
  template <class Make>
  void say(Make&& make) {
    if (with_words_) words.back() = std::forward<Make>(make)();
  }
  // The last step delivered a version that the property forbids.
  void stale() {
    if (stale_at == kNone) stale_at = states.size() - 1;
  }

  static constexpr size_t kNone = SIZE_MAX;
  std::vector<State> states;
  std::vector<std::string> words;
  size_t stale_at = kNone;

 private:
  const bool with_words_;
};

class Steps {
 public:
  Steps(const World& world, const RuleSet& rules);

  void expand(const State& now, Successors& out);

 private:
  // What a mutation does to a key, by its role and the rules.
  struct Plan {
    bool changes, marks, records, erases, stores;
  };
  enum class Outcome : Byte { kConfirmed, kFailed, kUnknown };

  State& add() { return out_->add(*now_); }
  bool on(Rule rule) const { return rules_.on(rule); }

  // reader_steps.cc
  void read(int i);
  void start_read(int i, int key, bool stat);
  void near_lookup(int i);
  void provider_get(int i);
  void check_object(State& s, int i);
  void decide(State& s, int i);
  void verify(int i);
  void miss(int i);
  void backend_read(int i);
  void fill_check(int i);
  void near_put(int i);
  void fill_put(int i);
  void follower(int i);
  void look(const State& s, Reader& reader, bool leaf, bool root) const;
  void after_lookup(Reader& reader) const;
  bool suspect(const State& s, const Object& object) const;
  void refuse(Reader& reader) const;
  bool joinable(const State& s, int i) const;
  void deliver(Reader& reader, Byte version);
  void finish_read(State& s, int i) const;

  // writer_steps.cc
  void write(int m);
  void begin_mutation(int m);
  void backend_call(int m);
  void set_records(State& s, int m, bool unmark) const;
  void unmark(State& s, int m) const;
  void clock_step(int m);
  void issue_call(int m);
  void provider_call(int m);
  void enter_calls(State& s, int m) const;
  void next_key(State& s, int m, Byte after) const;
  void end_mutation(State& s, int m) const;
  bool excluded(int m) const;
  bool touches_nothing(int m) const;
  void forget_outcome(Writer& w, int m) const;
  bool stores_now(const State& s, int m) const;

  // settle_steps.cc
  void settle();
  void settle_key(int key);
  void finish_settle();
  void drop_expired();
  void fold();
  void fold_begins(int kind);
  void fold_ends();
  void sweep();
  bool may_settle(const State& s, int key, Byte value) const;
  static bool old_fill(const State& s, int key, Byte value);
  static void drop_record(Key& key);
  void mark_unknown(State& s, int key, const Object& object) const;

  // process_steps.cc
  void process();
  void start();
  void read_marker();
  void write_pointer();
  void close();
  void closing();
  void stop(State& s) const;
  void fresh_attempt(State& s) const;
  void adopt(State& s) const;
  void drop_older();

  // normal_form.cc
  void normalise(State& s) const;
  void drop_dead(State& s) const;
  static uint32_t lives_in_use(const State& s);
  static Byte fresh_life(const State& s);

  // environment_steps.cc
  void environment();
  void late_calls();
  void forget();
  void fail_over();
  void notice();
  void time_passes();
  bool room(const State& s) const;
  static void put_late(State& s, const LateCall& call);
  static void sort_late(State& s);
  void store(State& s, int key, const Object& object) const;
  void land_marker(State& s, int marker) const;

  // Adds the ways in which a put, pointer or marker call can end. `apply(state)` is its effect, `late(state)` notes
  // that it is under way, `done(state, outcome)` is what the caller does then.
  template <class What, class Apply, class LateNote, class Done>
  void call(What what, Apply apply, LateNote late, Done done);

  static bool serves(const State& s) { return s.process == Process::kUp || s.process == Process::kRejoin; }
  bool covered_since(const State& s, int key, Byte start) const;  // a record newer than start
  static bool running(const State& s, int key);
  bool expired(const State& s, const Object& object) const;
  static Byte bigger(Byte a, Byte b) { return a > b ? a : b; }

  const World& world_;
  const RuleSet& rules_;
  std::array<std::array<Plan, kMaxKeys>, kMaxMutations> plans_{};
  std::array<std::array<bool, kMaxMutations>, kMaxMutations> exclusive_{};
  const State* now_ = nullptr;
  Successors* out_ = nullptr;
};

template <class What, class Apply, class LateNote, class Done>
void Steps::call(What what, Apply apply, LateNote late, Done done) {
  auto tell = [&](std::string_view how) { out_->say([&] { return what() + std::string(how); }); };
  State& confirmed = add();
  apply(confirmed);
  done(confirmed, Outcome::kConfirmed);
  tell(" takes effect and is confirmed");
  State& failed = add();
  done(failed, Outcome::kFailed);
  tell(" fails without effect");
  State& lost = add();
  apply(lost);
  done(lost, Outcome::kUnknown);
  tell(" takes effect but times out");
  State& under_way = add();
  if (!late(under_way)) {
    out_->drop_last();
    return;
  }
  done(under_way, Outcome::kUnknown);
  tell(" times out and is still under way");
}

}  // namespace ragfs::model
