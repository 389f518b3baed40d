// RingPool: reads through io_uring on the caller's own thread, each with a deadline.
//
// A reader submits its read and waits for it in one system call, without handing it to another thread, and leaves when
// its deadline passes. The ring of a read that was left, with all that the read needs, is set aside until the kernel
// answers; so a hung disk holds rings, never threads, and no more than there are.
// Not for: writes, opening files (ReadPool does what may block otherwise). Thread-safety: all methods may be called
// from any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/sync.h"

namespace ragfs {

// What a read needs as long as the kernel may write into its buffer.
class PendingRead {
 public:
  virtual ~PendingRead() = default;
  // The reader has left, and only now is there an answer.
  virtual void came_back(ssize_t result) = 0;
};

class RingPool {
 public:
  // nullptr where the kernel has no io_uring for us.
  static std::unique_ptr<RingPool> open(size_t rings);
  // Waits for what is under way, however long it takes: the kernel writes into its buffers.
  ~RingPool();
  RingPool(const RingPool&) = delete;
  RingPool& operator=(const RingPool&) = delete;

  enum class Outcome : uint8_t {
    done,       // `result` is what pread would have answered, or the negated errno
    timed_out,  // the buffer stays in use; `keep` is held until it is not
    busy,       // no ring is free: nothing was done
  };
  // Reads into `buffer`, which `keep` keeps alive.
  Outcome read(int fd, char* buffer, unsigned bytes, uint64_t offset, std::shared_ptr<PendingRead> keep,
               Deadline deadline, ssize_t& result);
  // Takes rings back whose reads have come back since. How many are still out.
  size_t reap();

 private:
  struct Ring;
  RingPool();
  std::unique_ptr<Ring> acquire();

  Mutex mutex_;
  std::vector<std::unique_ptr<Ring>> free_ RAGFS_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Ring>> left_ RAGFS_GUARDED_BY(mutex_);  // their readers gave up
};

}  // namespace ragfs
