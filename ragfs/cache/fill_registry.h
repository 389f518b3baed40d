// FillRegistry: which fills run now, and since when.
//
// A fill (a miss, a prefetch, a near-tier copy: anything that may put bytes that it did not just write) registers
// before it takes its start value and stays registered until its put has been answered. A record of value r can be let
// go only by an erase issued after every fill that started below r had ended, or that fill's late put would outlive the
// record. Tickets make this a comparison: fills get growing numbers; a fill with a start below r has a number at or
// below the last one issued when r was set. So an erase settles r if, when it is issued, the oldest running number is
// greater. Bounds: at most `max_fills` run, and at most `kMostNumbers` began since the oldest running one (a hung fill
// must not make the table grow); past either, begin() says no, and the read goes on without filling. Thread-safety: all
// methods may be called from any thread; short critical sections.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "ragfs/base/sync.h"
#include "ragfs/cache/mutation_table.h"

namespace ragfs {

class FillRegistry {
 public:
  struct Fill {
    uint64_t number = 0;
    uint64_t start = 0;  // mutation clock when the fill began: the stamp of what it stores
  };

  FillRegistry(const MutationTable& table, size_t max_fills) : table_(table), max_fills_(max_fills) {}

  std::optional<Fill> begin();
  void end(const Fill& fill);

  // No fill begins from here on.
  void stop();
  // Waits until no fill runs; false at the deadline. After stop().
  bool wait_until_none(Deadline deadline) const;

  // The number of the last fill that began.
  uint64_t last_issued() const;
  // True when every fill with a number at or below `number` has ended.
  bool all_ended_through(uint64_t number) const;
  size_t running() const;

 private:
  static constexpr size_t kMostNumbers = 1 << 20;
  const MutationTable& table_;
  const size_t max_fills_;
  mutable Mutex mutex_;
  mutable CondVar none_;
  bool stopped_ RAGFS_GUARDED_BY(mutex_) = false;
  uint64_t first_ RAGFS_GUARDED_BY(mutex_) = 1;        // number of running_.front()
  std::deque<bool> running_ RAGFS_GUARDED_BY(mutex_);  // by number, from first_ on; the front one runs
  size_t count_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs
