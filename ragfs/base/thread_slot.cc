#include "ragfs/base/thread_slot.h"

#include <array>
#include <utility>

#include "ragfs/base/sync.h"

namespace ragfs::thread_slot_detail {
namespace {

// Which numbers are taken: the one piece of process-wide state that threads need to have numbers at all. Trivially
// destructible, because threads may end after main() did.
struct Taken {
  Mutex mutex;
  std::array<bool, kThreadSlots> slots RAGFS_GUARDED_BY(mutex){};
};

Taken& taken() {
  static constinit Taken instance;
  return instance;
}

// Gives the slot back when the thread ends. The mutex orders all that the thread stored before what the next one loads.
struct AtThreadEnd {
  size_t slot = kThreadSlots;
  ~AtThreadEnd() {
    mine = kThreadSlots;  // destructors that run after this one share
    if (slot == kThreadSlots) return;
    MutexLock lock(taken().mutex);
    taken().slots[slot] = false;
  }
};

}  // namespace

size_t claim() noexcept {
  mine = kThreadSlots;
  {
    MutexLock lock(taken().mutex);
    for (size_t slot = 0; slot < kThreadSlots; ++slot) {
      if (std::exchange(taken().slots[slot], true)) continue;
      mine = slot;
      break;
    }
  }
  thread_local AtThreadEnd at_end;
  at_end.slot = mine;
  return mine;
}

}  // namespace ragfs::thread_slot_detail
