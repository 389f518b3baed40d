// Time, behind a seam.
//
// For: everything that waits, expires or measures. Tests pass a ManualClock and move it by hand.
// Not for: the mutation clock of the cache (that one counts mutations, see cache/).
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace ragfs {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds that only grow inside a process. No relation to the date.
  virtual int64_t monotonic_ns() const = 0;
  // Nanoseconds since 1970-01-01 UTC; may step back when the machine's clock is set.
  virtual int64_t wall_ns() const = 0;

  // The machine's clocks; lives as long as the process.
  static const Clock& system();
};

// A clock that stands still until it is told to move.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t start_ns = 1'000'000'000) : monotonic_(start_ns), wall_(start_ns) {}
  int64_t monotonic_ns() const override { return monotonic_.load(); }
  int64_t wall_ns() const override { return wall_.load(); }
  void advance_ns(int64_t by_ns) {
    monotonic_ += by_ns;
    wall_ += by_ns;
  }
  void advance_ms(int64_t by_ms) { advance_ns(by_ms * 1'000'000); }
  // Steps the wall clock alone, as an operator or NTP does.
  void step_wall_ns(int64_t by_ns) { wall_ += by_ns; }

 private:
  std::atomic<int64_t> monotonic_;
  std::atomic<int64_t> wall_;
};

}  // namespace ragfs
