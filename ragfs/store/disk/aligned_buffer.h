// AlignedBuffer: memory that direct I/O may read into, and that then becomes Bytes without a copy.
//
// For: reads of records and the staging of bucket writes. Aligned to a block, a whole number of blocks. A read that its
// caller gave up keeps its buffer by itself. Not for: small values that live long (they would pin a block).
// Thread-safety: one thread at a time, until take() makes it immutable.
#pragma once

#include <cstddef>
#include <memory>

#include "ragfs/base/bytes.h"

namespace ragfs {

class AlignedBuffer {
 public:
  // `bytes` is rounded up to whole blocks. Contents are not set.
  explicit AlignedBuffer(size_t bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept = default;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept = default;
  ~AlignedBuffer() = default;

  char* data() noexcept { return block_.get(); }
  const char* data() const noexcept { return block_.get(); }
  size_t capacity() const noexcept { return capacity_; }
  // The bytes [offset, offset + size) as Bytes; the buffer is empty afterwards.
  Bytes take(size_t offset, size_t size) &&;

 private:
  struct Free {
    void operator()(char* block) const noexcept;
  };
  class Owner;
  std::unique_ptr<char, Free> block_;
  size_t capacity_ = 0;
};

}  // namespace ragfs
