// RunningCopy: copies of the provider's objects into the near tier that are under way, as one registered fill.
//
// Registered before the records are looked up, so that a mutation that comes after them waits for its end before it
// lets its record go (docs/design.md 3.4). Private to CoherenceDomain's source files.
// Thread-safety: belongs to one call.
#pragma once

#include <optional>

#include "ragfs/cache/fill_registry.h"
#include "ragfs/cache/settler.h"

namespace ragfs {

class RunningCopy {
 public:
  RunningCopy(FillRegistry& copies, Settler& settler) : copies_(copies), settler_(settler) {}
  RunningCopy(const RunningCopy&) = delete;
  RunningCopy& operator=(const RunningCopy&) = delete;
  ~RunningCopy() {
    if (!copy_) return;
    copies_.end(*copy_);
    settler_.fill_ended();
  }
  void begin() { copy_ = copies_.begin(); }
  bool runs() const { return copy_.has_value(); }

 private:
  FillRegistry& copies_;
  Settler& settler_;
  std::optional<FillRegistry::Fill> copy_;
};

}  // namespace ragfs
