// VirtualRange: addresses that are reserved for good, and filled with memory from the front as needed.
//
// For: tables and heaps that must never move and whose addresses must stay readable for ever once they were handed out
// (optimistic readers may follow an old pointer; after purge() they read zeros). Not for: small arrays.
// The reservation costs no memory and no commit charge; the committed prefix is ordinary zeroed anonymous memory.
// Thread-safety: commit() by one thread at a time; purge() of distinct parts from any threads.
#pragma once

#include <cstddef>

#include "ragfs/base/error.h"

namespace ragfs {

enum class PageSize : uint8_t {
  small,  // 4 KiB whatever the system prefers: what is touched is what is resident
  huge,   // 2 MiB where the system has them to give
};

inline constexpr size_t kPageBytes = 4096;
inline constexpr size_t kHugePageBytes = size_t{2} << 20;

class VirtualRange {
 public:
  VirtualRange() = default;
  // `bytes` is rounded up to pages; the base is aligned to 2 MiB. Errors: full (no address space: ulimit -v).
  static Result<VirtualRange> reserve(size_t bytes);
  VirtualRange(VirtualRange&& other) noexcept;
  VirtualRange& operator=(VirtualRange&& other) noexcept;
  ~VirtualRange();

  char* base() const noexcept { return base_; }
  size_t reserved_bytes() const noexcept { return reserved_; }

  // Asks for a page size in [offset, offset + bytes); best effort.
  void advise(size_t offset, size_t bytes, PageSize size) noexcept;
  // Makes [offset, offset + bytes) readable and writable; false when the system refused.
  bool commit(size_t offset, size_t bytes) noexcept;
  // Gives the memory of [offset, offset + bytes) back (both multiples of the page size); it then reads as zeros.
  void purge(size_t offset, size_t bytes) noexcept;

 private:
  char* base_ = nullptr;
  size_t reserved_ = 0;
  void* mapping_ = nullptr;  // with what was needed to align the base
  size_t mapped_ = 0;
};

}  // namespace ragfs
