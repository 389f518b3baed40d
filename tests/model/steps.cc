#include "tests/model/steps.h"

namespace ragfs::model {

Steps::Steps(const World& world, const RuleSet& rules) : world_(world), rules_(rules) {
  const size_t count = world.mutations.size();
  for (size_t m = 0; m < count; ++m) {
    const Mutation& mutation = world.mutations[m];
    for (int k = 0; k < world.keys; ++k) {
      const Role role = mutation.roles[k];
      Plan& plan = plans_[m][k];
      plan.changes = role != Role::kUntouched;
      plan.records = role == Role::kFile || role == Role::kNegative ||
                     (role == Role::kParentListing && on(Rule::kParentListing)) ||
                     (role == Role::kGrandparentListing && on(Rule::kGrandparentListing)) ||
                     (role == Role::kCreatedListing && on(Rule::kCreatedAncestors)) ||
                     (role == Role::kCreatedNegative && on(Rule::kNegativeAncestors));
      // Parents made on the way are known only after the backend call: a record without a running mark.
      const bool known_late = role == Role::kCreatedListing || role == Role::kCreatedNegative;
      plan.marks = plan.records && !known_late && on(Rule::kRunningMark);
      plan.erases = plan.records;
      plan.stores = mutation.stores && role == Role::kFile;
    }
    for (size_t other = 0; other < count; ++other) {
      exclusive_[m][other] = m != other && (mutation.path == world.mutations[other].path || mutation.subtree ||
                                            world.mutations[other].subtree);
    }
  }
}

void Steps::expand(const State& now, Successors& out) {
  out.clear();
  now_ = &now;
  out_ = &out;
  for (int i = 0; i < kReaders; ++i) read(i);
  for (size_t m = 0; m < world_.mutations.size(); ++m) write(static_cast<int>(m));
  settle();
  if (world_.restarts) process();
  environment();
  for (State& s : out.states) normalise(s);
}

bool Steps::running(const State& s, int key) {
  return s.keys[key].running != 0 || s.subtrees[0].running != 0 || s.subtrees[1].running != 0;
}

bool Steps::covered_since(const State& s, int key, Byte start) const {
  const Key& k = s.keys[key];
  if (k.has_record != 0 && k.record > start) return true;
  for (const Subtree& subtree : s.subtrees) {
    if (subtree.has_record != 0 && subtree.record > start) return true;
  }
  return false;
}

bool Steps::expired(const State& s, const Object& object) const {
  return world_.ttl > 0 && s.now >= object.filled_at + world_.ttl;
}

}  // namespace ragfs::model
