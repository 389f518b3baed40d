// The vocabulary of ScriptedProvider: operations, actions, rules, and the gate that a rule can make a call wait at.
//
// For: tests that say what an engine does wrong, to which call, how often. Not for: production code.
// Thread-safety: Rule is a value; Gate may be used from any threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"

namespace ragfs::scripted {

enum class Op : uint8_t { get, put, erase, get_many, put_many, erase_many, put_atomic, erase_if, health };
inline constexpr size_t kOpCount = static_cast<size_t>(Op::health) + 1;

enum class Action : uint8_t {
  pass,       // does what the engine should (with the rule's delay and hooks)
  fail,       // answers Rule::code; nothing is applied
  lose,       // answers timeout; never applied
  land_late,  // put, put_atomic, erase: answers Rule::code (timeout by default); applied later. get: like fail
  drop,       // answers success; never applied. get: a miss
};

// What happens to the calls it matches. Rules are asked in the order they were added; the first that matches and has
// not run out decides alone. A batch is matched first as a whole (its own Op, key_prefix ""; the decision then counts
// for all its keys), then key by key under the single Op.
struct Rule {
  std::optional<Op> op;    // absent = every operation
  std::string key_prefix;  // "" = every key; a whole key's text = that key
  Action action = Action::pass;
  ErrorCode code = ErrorCode::timeout;   // what `fail` and `land_late` answer
  uint64_t skip = 0;                     // so many matching calls pass before the first that fires
  std::optional<uint64_t> times;         // fires so often; absent = for ever
  int64_t delay_ms = 0;                  // before it is applied; cut at the deadline, then `timeout` is answered and
                                         // a write lands when the delay would have ended
  std::optional<int64_t> land_after_ms;  // land_late: by itself after so long; absent = when land() is called
  std::function<void(std::string_view)> before;  // called with the key before anything happens, under no lock
  std::function<void(std::string_view)> after;   // called when it was applied and not yet answered, under no lock
};

// A place where a call stands still until the test lets it go on. As a hook: `rule.before = gate->hook()`.
class Gate {
 public:
  // The hook shares the gate's state, so it may outlive the Gate.
  std::function<void(std::string_view)> hook() const;
  // Waits until `count` calls in all have arrived; false when the deadline passed first.
  bool wait_for_arrivals(uint64_t count = 1, Deadline deadline = Deadline::in_ms(20'000)) const;
  // Lets all go, now and from now on.
  void open() const;
  // Opens; so that a failed assertion leaves no thread behind.
  ~Gate() { open(); }
  Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

 private:
  struct State {
    Mutex mutex;
    CondVar changed;
    uint64_t arrivals RAGFS_GUARDED_BY(mutex) = 0;
    bool open RAGFS_GUARDED_BY(mutex) = false;
  };
  std::shared_ptr<State> state_;
};

}  // namespace ragfs::scripted
