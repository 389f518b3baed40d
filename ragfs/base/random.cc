#include "ragfs/base/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdlib>

namespace ragfs {

uint64_t random_u64() {
  uint64_t value = 0;
  // So few bytes come whole and without waiting once the system is up; a kernel that has none leaves nothing to do.
  if (::getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}

std::string random_uuid() {
  const uint64_t high = (random_u64() & ~uint64_t{0xf000}) | 0x4000;               // version 4
  const uint64_t low = (random_u64() & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;  // the RFC's variant
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffffffffffff);
}

}  // namespace ragfs
