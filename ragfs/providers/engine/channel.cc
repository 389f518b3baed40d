#include "ragfs/providers/engine/channel.h"

#include <fmt/format.h>

#include <algorithm>

#include "ragfs/base/random.h"

namespace ragfs::engine {

void EngineIncarnation::observe(uint64_t hash) {
  if (hash == 0 || hash == current_.load(std::memory_order_acquire)) return;
  {
    const MutexLock lock(mutex_);
    if (std::ranges::find(seen_, hash) != seen_.end()) return;
    if (seen_.size() == kRemembered) seen_.erase(seen_.begin());
    seen_.push_back(hash);
    ++changes_;
    current_.store(hash, std::memory_order_release);
  }
  listener_.tell();
}

void EngineIncarnation::host_gone() {
  {
    const MutexLock lock(mutex_);
    salt_ = random_u64() | 1;
    seen_.clear();  // the same engine, asked by another host
    current_.store(0, std::memory_order_release);
    ++changes_;
  }
  listener_.tell();
}

std::string EngineIncarnation::text() const {
  const MutexLock lock(mutex_);
  if (seen_.empty() && salt_ == 0) return "";
  return fmt::format("{}-{:016x}-{:x}", name_, seen_.empty() ? 0 : seen_.back(), salt_);
}

uint64_t EngineIncarnation::changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

}  // namespace ragfs::engine
