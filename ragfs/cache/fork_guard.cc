#include "ragfs/cache/fork_guard.h"

#include <pthread.h>

#include <memory>

#include "ragfs/base/sync.h"

namespace ragfs {
namespace {

struct Guards {
  Mutex mutex;
  std::list<std::function<void()>> actions RAGFS_GUARDED_BY(mutex);
};

void before_fork() RAGFS_NO_THREAD_SAFETY_ANALYSIS;
void in_parent() RAGFS_NO_THREAD_SAFETY_ANALYSIS;
void in_child() RAGFS_NO_THREAD_SAFETY_ANALYSIS;

// The one list of the process, as fork() is the process's. Never destroyed: it may be asked while the program exits.
Guards& guards() {
  static Guards* const all = [] {
    auto made = std::make_unique<Guards>().release();
    (void)::pthread_atfork(before_fork, in_parent, in_child);
    return made;
  }();
  return *all;
}

void before_fork() { guards().mutex.lock(); }
void in_parent() { guards().mutex.unlock(); }
void in_child() {
  for (const std::function<void()>& action : guards().actions) action();
  guards().mutex.unlock();
}

}  // namespace

ForkGuard::ForkGuard(std::function<void()> in_child) {
  MutexLock lock(guards().mutex);
  at_ = guards().actions.insert(guards().actions.end(), std::move(in_child));
}

ForkGuard::~ForkGuard() {
  MutexLock lock(guards().mutex);
  guards().actions.erase(at_);
}

}  // namespace ragfs
