#include "ragfs/base/pause_point.h"

#include <atomic>
#include <map>
#include <utility>

#include "ragfs/base/sync.h"

namespace ragfs {

struct PausePoints::Armed::State {
  Mutex mutex;
  CondVar changed;
  int stops_left RAGFS_GUARDED_BY(mutex) = 0;
  int arrived RAGFS_GUARDED_BY(mutex) = 0;
  bool released RAGFS_GUARDED_BY(mutex) = false;
};

namespace {

constexpr int64_t kLongestStopMs = 60'000;

using State = PausePoints::Armed;

struct Registry {
  std::atomic<int> armed{0};
  Mutex mutex;
  std::map<std::string, std::function<void()>, std::less<>> handlers RAGFS_GUARDED_BY(mutex);
};

// A registry for the process: pause points are named in code that knows nothing of the test around it.
Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

PausePoints::Armed::Armed(std::shared_ptr<State> state) : state_(std::move(state)) {}

PausePoints::Armed::~Armed() { release(); }

bool PausePoints::Armed::wait_for_arrival(Deadline deadline) {
  MutexLock lock(state_->mutex);
  while (state_->arrived == 0) {
    if (!state_->changed.wait_until(state_->mutex, deadline)) return state_->arrived > 0;
  }
  return true;
}

void PausePoints::Armed::release() {
  MutexLock lock(state_->mutex);
  state_->released = true;
  state_->changed.notify_all();
}

std::unique_ptr<PausePoints::Armed> PausePoints::arm(std::string_view name, int stops) {
  auto state = std::make_shared<Armed::State>();
  {
    MutexLock lock(state->mutex);
    state->stops_left = stops;
  }
  set_handler(name, [state] {
    MutexLock lock(state->mutex);
    if (state->released || state->stops_left == 0) return;
    --state->stops_left;
    ++state->arrived;
    state->changed.notify_all();
    const Deadline longest = Deadline::in_ms(kLongestStopMs);
    while (!state->released && state->changed.wait_until(state->mutex, longest)) {
    }
  });
  return std::unique_ptr<Armed>(new Armed(std::move(state)));
}

void PausePoints::set_handler(std::string_view name, std::function<void()> handler) {
  MutexLock lock(registry().mutex);
  registry().handlers.insert_or_assign(std::string(name), std::move(handler));
  registry().armed.store(static_cast<int>(registry().handlers.size()));
}

void PausePoints::clear() {
  MutexLock lock(registry().mutex);
  registry().handlers.clear();
  registry().armed.store(0);
}

void PausePoints::reach(std::string_view name) {
  std::function<void()> handler;
  {
    MutexLock lock(registry().mutex);
    const auto found = registry().handlers.find(name);
    if (found == registry().handlers.end()) return;
    handler = found->second;
  }
  handler();
}

bool PausePoints::any_armed() noexcept { return registry().armed.load(std::memory_order_relaxed) != 0; }

}  // namespace ragfs
