#include "tests/model/search.h"

#include <chrono>
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "tests/model/state.h"
#include "tests/model/steps.h"

namespace ragfs::model {
namespace {

// An open-addressing set of fingerprints, none of them 0.
class FingerprintSet {
 public:
  // False when it was there.
  bool insert(uint64_t fingerprint) {
    if ((size_ + 1) * 10 > slots_.size() * 7) grow();
    if (!place(slots_, fingerprint)) return false;
    ++size_;
    return true;
  }
  uint64_t size() const { return size_; }

 private:
  static bool place(std::vector<uint64_t>& slots, uint64_t fingerprint) {
    const size_t mask = slots.size() - 1;
    size_t at = fingerprint >> 20 & mask;
    while (slots[at] != 0) {
      if (slots[at] == fingerprint) return false;
      at = (at + 1) & mask;
    }
    slots[at] = fingerprint;
    return true;
  }
  void grow() {
    std::vector<uint64_t> bigger(slots_.size() * 2);
    for (const uint64_t fingerprint : slots_) {
      if (fingerprint != 0) place(bigger, fingerprint);
    }
    slots_.swap(bigger);
  }

  std::vector<uint64_t> slots_ = std::vector<uint64_t>(1 << 16);
  uint64_t size_ = 0;
};

// How each state was first reached, for the trace. States are numbered as they are found.
struct Origin {
  uint32_t parent;
  uint16_t step;  // which of the parent's successors
};
constexpr uint32_t kNoParent = UINT32_MAX;

class Explorer {
 public:
  Explorer(const World& world, const RuleSet& rules, uint64_t max_states)
      : world_(world), steps_(world, rules), max_states_(max_states) {}

  Finding run() {
    for (uint16_t cached = 0; cached < 2; ++cached) visit(first_state(world_, cached != 0), {kNoParent, cached});
    Finding finding;
    uint32_t depth = 0;
    uint32_t id = 0;
    uint32_t level_end = static_cast<uint32_t>(origins_.size());
    Successors out(false);
    for (; !queue_.empty(); ++id) {
      if (id == level_end) {
        ++depth;
        level_end = static_cast<uint32_t>(origins_.size());
      }
      steps_.expand(queue_.front(), out);
      queue_.pop_front();
      if (out.stale_at != Successors::kNone) {
        finding.verdict = Verdict::kStale;
        finding.trace = trace(id, static_cast<uint16_t>(out.stale_at));
        break;
      }
      for (size_t i = 0; i < out.states.size(); ++i) visit(out.states[i], {id, static_cast<uint16_t>(i)});
      if (visited_.size() > max_states_) break;
    }
    if (finding.verdict != Verdict::kStale && queue_.empty()) finding.verdict = Verdict::kSafe;
    finding.states = visited_.size();
    finding.depth = finding.verdict == Verdict::kStale ? depth + 1 : depth;
    return finding;
  }

 private:
  void visit(const State& state, Origin origin) {
    if (!visited_.insert(fingerprint(world_, state))) return;
    origins_.push_back(origin);
    queue_.push_back(state);
  }

  // Takes the steps again, this time with words.
  std::vector<std::string> trace(uint32_t id, uint16_t last) {
    std::vector<uint16_t> taken{last};
    for (; origins_[id].parent != kNoParent; id = origins_[id].parent) taken.push_back(origins_[id].step);
    const bool cached = origins_[id].step != 0;
    std::vector<std::string> words{
        fmt::format("the backend holds v{}, the cache {}", world_.first_version, cached ? "holds it too" : "is empty")};
    State state = first_state(world_, cached);
    Successors out(true);
    for (auto step = taken.rbegin(); step != taken.rend(); ++step) {
      steps_.expand(state, out);
      words.push_back(out.words[*step]);
      state = out.states[*step];
    }
    return words;
  }

  const World& world_;
  Steps steps_;
  const uint64_t max_states_;
  FingerprintSet visited_;
  std::deque<Origin> origins_;
  std::deque<State> queue_;
};

}  // namespace

Finding explore(const World& world, const RuleSet& rules, uint64_t max_states) {
  const auto began = std::chrono::steady_clock::now();
  Finding finding = Explorer(world, rules, max_states).run();
  finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return finding;
}

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSafe: return "safe";
    case Verdict::kStale: return "STALE";
    case Verdict::kBound: return "bound";
  }
  return "";
}

}  // namespace ragfs::model
