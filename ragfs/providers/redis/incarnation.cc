#include "ragfs/providers/redis/incarnation.h"

#include <fmt/format.h>

#include "ragfs/base/hash.h"
#include "ragfs/base/random.h"

namespace ragfs::redis {

bool Incarnation::observe(const std::string& position, const ServerIdentity& identity) {
  {
    MutexLock lock(mutex_);
    const std::string shown = identity.known ? identity.text() : fmt::format("unknown-{:016x}", random_u64());
    std::string& known = identities_[position];
    if (known == shown) return false;
    known = shown;
    renew_locked();
  }
  listener_.tell();
  return true;
}

void Incarnation::changed() {
  {
    MutexLock lock(mutex_);
    salt_ = random_u64();
    renew_locked();
  }
  listener_.tell();
}

void Incarnation::renew_locked() {
  std::string all = fmt::format("{:016x}", salt_);
  for (const auto& [position, identity] : identities_) all += fmt::format("\n{} {}", position, identity);
  const Hash128 hash = hash128(all);
  text_ = fmt::format("redis-{:016x}{:016x}", hash.high, hash.low);
  changes_.fetch_add(1);
}

std::string Incarnation::text() const {
  MutexLock lock(mutex_);
  return text_;
}

}  // namespace ragfs::redis
