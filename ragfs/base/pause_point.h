// Named pause points: places where a test can stop a thread to make a race happen every time.
//
// Code says `RAGFS_PAUSE_POINT("fill.before_put");`. A test arms the name with PausePoints::arm() and waits for a
// thread to arrive, or installs a handler (which may also kill the process: crash tests). In builds without
// RAGFS_TEST_HOOKS the macro is nothing. With it, an unarmed point costs one relaxed load. Thread-safety: all functions
// may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ragfs/base/context.h"

namespace ragfs {

class PausePoints {
 public:
  // Stops threads that reach one point. Destroying it lets them go.
  class Armed {
   public:
    ~Armed();
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;
    // Waits until a thread stands at the point; false when the deadline passed first.
    bool wait_for_arrival(Deadline deadline = Deadline::in_ms(20'000));
    // Lets all threads go, now and from now on.
    void release();

   private:
    friend class PausePoints;
    struct State;
    explicit Armed(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
  };

  // The first `stops` threads that reach `name` stop there until released (at most 60 s, then they go on).
  static std::unique_ptr<Armed> arm(std::string_view name, int stops = 1);
  // Runs `handler` on each thread that reaches `name`, until clear().
  static void set_handler(std::string_view name, std::function<void()> handler);
  static void clear();
  // Called by the macro.
  static void reach(std::string_view name);
  static bool any_armed() noexcept;
};

}  // namespace ragfs

#if defined(RAGFS_TEST_HOOKS)
#define RAGFS_PAUSE_POINT(name)                                               \
  do {                                                                        \
    if (::ragfs::PausePoints::any_armed()) ::ragfs::PausePoints::reach(name); \
  } while (false)
#else
#define RAGFS_PAUSE_POINT(name) \
  do {                          \
  } while (false)
#endif
