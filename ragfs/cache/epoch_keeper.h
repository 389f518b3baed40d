// EpochKeeper: what a coherence domain asks of the life that it belongs to (lives/life.h): the next epoch, and leave to
// change a backend.
//
// A domain without a keeper (tests, tools) gives itself random epochs and may change everything.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <cstdint>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"

namespace ragfs {

struct BackendDomain;

class EpochKeeper {
 public:
  virtual ~EpochKeeper() = default;
  // The domain has left its epoch. The next one when it can be had without asking anybody; else 0, and the keeper calls
  // CoherenceDomain::begin_epoch() when it has one. Does not block.
  virtual uint64_t next_epoch() = 0;
  // The provider answers again after a time in which it did not. Does not block.
  virtual void provider_returned() {}
  // Before the first mutation of a backend, and before the first one after a close. Errors: read_only (another process
  // holds the backend: the message names it), those of the state directory: nothing may be changed then.
  virtual Result<void> admit(const BackendDomain& backend) = 0;
};

}  // namespace ragfs
