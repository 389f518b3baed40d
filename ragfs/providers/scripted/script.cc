#include "ragfs/providers/scripted/script.h"

namespace ragfs::scripted {

namespace {
// A test that forgets to open its gate ends all the same.
constexpr int64_t kLongestStop_ms = 60'000;
}  // namespace

Gate::Gate() : state_(std::make_shared<State>()) {}

std::function<void(std::string_view)> Gate::hook() const {
  return [state = state_](std::string_view) {
    const Deadline longest = Deadline::in_ms(kLongestStop_ms);
    const MutexLock lock(state->mutex);
    ++state->arrivals;
    state->changed.notify_all();
    while (!state->open && state->changed.wait_until(state->mutex, longest)) {
    }
  };
}

bool Gate::wait_for_arrivals(uint64_t count, Deadline deadline) const {
  const MutexLock lock(state_->mutex);
  while (state_->arrivals < count) {
    if (!state_->changed.wait_until(state_->mutex, deadline)) return state_->arrivals >= count;
  }
  return true;
}

void Gate::open() const {
  const MutexLock lock(state_->mutex);
  state_->open = true;
  state_->changed.notify_all();
}

}  // namespace ragfs::scripted
