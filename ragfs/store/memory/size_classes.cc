#include "ragfs/store/memory/size_classes.h"

#include <algorithm>
#include <bit>

namespace ragfs {

namespace {

constexpr size_t kSmallestCellBytes = 72;  // an entry's header and a key of 8

size_t step_after(size_t bytes) {
  if (bytes < 256) return 8;
  return std::bit_floor(bytes) / (bytes < 1024 ? 16 : 8);
}

}  // namespace

SizeClasses::SizeClasses(size_t small_limit_bytes, size_t max_bytes) {
  for (size_t bytes = kSmallestCellBytes; bytes <= small_limit_bytes; bytes += step_after(bytes)) {
    sizes_.push_back(bytes);
  }
  first_large_ = sizes_.size();
  size_t largest = sizes_.empty() ? 0 : sizes_.back();
  while (largest < max_bytes) {
    largest = std::bit_ceil(std::max(largest + 1, size_t{4096}));
    sizes_.push_back(largest);
  }
  for (size_t i = 0; i < std::size(direct_); ++i) {
    const auto found = std::lower_bound(sizes_.begin(), sizes_.end(), i * 8);
    direct_[i] = static_cast<uint8_t>(found - sizes_.begin());
  }
}

size_t SizeClasses::index_for(size_t bytes) const noexcept {
  if (bytes <= kDirectLimitBytes) return direct_[(bytes + 7) / 8];
  return static_cast<size_t>(std::lower_bound(sizes_.begin(), sizes_.end(), bytes) - sizes_.begin());
}

}  // namespace ragfs
