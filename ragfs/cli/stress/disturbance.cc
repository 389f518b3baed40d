#include "ragfs/cli/stress/disturbance.h"

#include <array>
#include <atomic>
#include <memory>
#include <string_view>
#include <thread>

#include "ragfs/base/pause_point.h"
#include "ragfs/base/sync.h"
#include "ragfs/cli/stress/random.h"

namespace ragfs::stress {
namespace {

constexpr std::array<std::string_view, 22> kPoints{"epoch.before_reset",
                                                   "fold.between_parent_and_child",
                                                   "mutation.clock_advanced",
                                                   "settler.before_finish_unknown",
                                                   "fill.after_backend_list",
                                                   "fill.after_backend_read",
                                                   "fill.before_backend_list",
                                                   "fill.before_backend_read",
                                                   "fill.before_put",
                                                   "flight.leads",
                                                   "lookup.after_get",
                                                   "lookup.before_get",
                                                   "mutation.after_backend",
                                                   "mutation.before_backend",
                                                   "mutation.before_publish",
                                                   "mutation.before_settle",
                                                   "mutation.between_unmark_and_record",
                                                   "mutation.marked",
                                                   "mutation.settled",
                                                   "negative.before_remember",
                                                   "observe.between_leaf_and_root",
                                                   "settler.before_erase"};

constexpr uint64_t kYieldOneIn = 16;
constexpr uint64_t kStopOneIn = 256;
constexpr uint64_t kLongestStopUs = 2'000;

void disturb(std::atomic<uint64_t>& draws) {
  Random random(draws.fetch_add(1, std::memory_order_relaxed));
  if (random.below(kStopOneIn) == 0) {
    Mutex mutex;
    CondVar never;
    const Deadline until = Deadline::in_ns(static_cast<int64_t>(random.below(kLongestStopUs)) * 1'000);
    MutexLock lock(mutex);
    while (never.wait_until(mutex, until)) {
    }
  } else if (random.below(kYieldOneIn) == 0) {
    std::this_thread::yield();
  }
}

}  // namespace

Disturbance::Disturbance(uint64_t seed) {
  auto draws = std::make_shared<std::atomic<uint64_t>>(mix64(seed ^ 0xd));
  for (const std::string_view point : kPoints) {
    PausePoints::set_handler(point, [draws] { disturb(*draws); });
  }
}

Disturbance::~Disturbance() { PausePoints::clear(); }

}  // namespace ragfs::stress
