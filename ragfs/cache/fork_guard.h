// ForkGuard: what an object does in a child after fork().
//
// A child has none of its parent's threads, and locks may stand locked for ever. So caches let go of themselves there:
// reads ask the backends, mutations are refused (docs/design.md 3.9). The action runs in the child before fork()
// returns; it may only store to atomics and close descriptors. Not for: posix_spawn() or exec(), which keep nothing.
// Thread-safety: guards may be made and destroyed on any thread; no guard is made or destroyed while fork() runs.
#pragma once

#include <functional>
#include <list>

namespace ragfs {

class ForkGuard {
 public:
  explicit ForkGuard(std::function<void()> in_child);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

 private:
  std::list<std::function<void()>>::iterator at_;
};

}  // namespace ragfs
