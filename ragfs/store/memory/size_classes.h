// SizeClasses: which cell sizes the heap of the memory tier hands out.
//
// Small cells share a slab; steps of 8 bytes up to 256, then a sixteenth of the power of two up to 1 KiB, then an
// eighth. Large cells have a slab of addresses of their own, a power of two; only the pages they need are filled.
// Thread-safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ragfs {

class SizeClasses {
 public:
  // Cells up to `small_limit_bytes` are small; a class exists for every size up to `max_bytes`.
  SizeClasses(size_t small_limit_bytes, size_t max_bytes);

  size_t count() const noexcept { return sizes_.size(); }
  // Bytes of a cell of this class; for a large class the most it can hold.
  size_t cell_bytes(size_t index) const noexcept { return sizes_[index]; }
  bool is_large(size_t index) const noexcept { return index >= first_large_; }
  // The class for `bytes`, which must not exceed max_bytes.
  size_t index_for(size_t bytes) const noexcept;

 private:
  static constexpr size_t kDirectLimitBytes = 1024;
  std::vector<size_t> sizes_;
  size_t first_large_ = 0;
  uint8_t direct_[kDirectLimitBytes / 8 + 1] = {};  // class by (bytes + 7) / 8
};

}  // namespace ragfs
