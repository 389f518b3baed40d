#include "ragfs/store/disk/aligned_buffer.h"

#include <cstdlib>
#include <utility>

#include "ragfs/store/disk/bucket_format.h"

namespace ragfs {

class AlignedBuffer::Owner final : public BytesOwner {
 public:
  explicit Owner(std::unique_ptr<char, Free> block) : BytesOwner(&release), block_(std::move(block)) {}

 private:
  static void release(BytesOwner* owner) noexcept { std::unique_ptr<Owner>(static_cast<Owner*>(owner)).reset(); }
  std::unique_ptr<char, Free> block_;
};

void AlignedBuffer::Free::operator()(char* block) const noexcept { std::free(block); }

AlignedBuffer::AlignedBuffer(size_t bytes)
    : block_(static_cast<char*>(std::aligned_alloc(kBlockBytes, round_up(bytes == 0 ? 1 : bytes, kBlockBytes)))),
      capacity_(round_up(bytes == 0 ? 1 : bytes, kBlockBytes)) {
  if (block_ == nullptr) std::abort();  // as operator new would end it
}

Bytes AlignedBuffer::take(size_t offset, size_t size) && {
  const char* start = block_.get() + offset;
  capacity_ = 0;
  return Bytes::adopt(start, size, std::make_unique<Owner>(std::move(block_)).release());
}

}  // namespace ragfs
