// Search: every state of a world, breadth first, so that the first stale read has a shortest trace.
//
// The visited set holds 64-bit fingerprints: with 10^8 states the chance that one is wrongly taken for visited is about
// 3 in 10^4. About 22 bytes a state, and the states of one depth. Thread-safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/rule_set.h"
#include "tests/model/world.h"

namespace ragfs::model {

enum class Verdict : uint8_t {
  kSafe,   // every state within the bounds was seen, and no read was stale
  kStale,  // a stale read was found
  kBound,  // the bound of states was reached: nothing is known
};

struct Finding {
  Verdict verdict = Verdict::kBound;
  uint64_t states = 0;
  uint32_t depth = 0;  // of the state space, or steps of the trace
  double seconds = 0;
  std::vector<std::string> trace;  // of a stale read, one step a line
};

// Explores `world` under `rules`, up to `max_states`.
Finding explore(const World& world, const RuleSet& rules, uint64_t max_states);

std::string_view verdict_word(Verdict verdict);

}  // namespace ragfs::model
