#include "ragfs/cache/fill_registry.h"

namespace ragfs {

std::optional<FillRegistry::Fill> FillRegistry::begin() {
  MutexLock lock(mutex_);
  if (stopped_ || count_ >= max_fills_ || running_.size() >= kMostNumbers) return std::nullopt;
  ++count_;
  running_.push_back(true);
  // The clock is read inside: a mutation that set its record and then asks last_issued() sees this fill, or this fill
  // sees the mutation's clock value.
  return Fill{first_ + running_.size() - 1, table_.clock()};
}

void FillRegistry::end(const Fill& fill) {
  MutexLock lock(mutex_);
  running_[fill.number - first_] = false;
  --count_;
  while (!running_.empty() && !running_.front()) {
    running_.pop_front();
    ++first_;
  }
  if (stopped_ && count_ == 0) none_.notify_all();
}

void FillRegistry::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

bool FillRegistry::wait_until_none(Deadline deadline) const {
  MutexLock lock(mutex_);
  while (count_ > 0) {
    if (!none_.wait_until(mutex_, deadline)) return count_ == 0;
  }
  return true;
}

uint64_t FillRegistry::last_issued() const {
  MutexLock lock(mutex_);
  return first_ + running_.size() - 1;
}

bool FillRegistry::all_ended_through(uint64_t number) const {
  MutexLock lock(mutex_);
  return first_ > number;
}

size_t FillRegistry::running() const {
  MutexLock lock(mutex_);
  return count_;
}

}  // namespace ragfs
