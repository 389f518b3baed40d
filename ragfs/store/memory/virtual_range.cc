#include "ragfs/store/memory/virtual_range.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace ragfs {

Result<VirtualRange> VirtualRange::reserve(size_t bytes) {
  VirtualRange range;
  range.reserved_ = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  range.mapped_ = range.reserved_ + kHugePageBytes;
  void* mapping = mmap(nullptr, range.mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    const int error = errno;
    return fail(ErrorCode::full,
                fmt::format("cannot reserve {} bytes of address space (is there a `ulimit -v`?)", range.mapped_),
                error);
  }
  range.mapping_ = mapping;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t aligned = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  range.base_ = static_cast<char*>(mapping) + (aligned - address);
  return range;
}

VirtualRange::VirtualRange(VirtualRange&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      reserved_(std::exchange(other.reserved_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

VirtualRange& VirtualRange::operator=(VirtualRange&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(reserved_, other.reserved_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

VirtualRange::~VirtualRange() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

void VirtualRange::advise(size_t offset, size_t bytes, PageSize size) noexcept {
  madvise(base_ + offset, bytes, size == PageSize::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

bool VirtualRange::commit(size_t offset, size_t bytes) noexcept {
  return mprotect(base_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}

void VirtualRange::purge(size_t offset, size_t bytes) noexcept { madvise(base_ + offset, bytes, MADV_DONTNEED); }

}  // namespace ragfs
