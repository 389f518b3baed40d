#include "ragfs/base/clock.h"

#include <ctime>

namespace ragfs {
namespace {

int64_t read_clock_ns(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return read_clock_ns(CLOCK_MONOTONIC); }
  int64_t wall_ns() const override { return read_clock_ns(CLOCK_REALTIME); }
};

}  // namespace

const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

}  // namespace ragfs
