#include "ragfs/base/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ragfs {

// One allocation: the owner, then the bytes.
struct ByteBuffer::Block final : BytesOwner {
  Block() : BytesOwner(&Block::destroy) {}
  char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
  static void destroy(BytesOwner* owner) noexcept {
    auto* block = static_cast<Block*>(owner);
    block->~Block();
    std::free(block);
  }
};

ByteBuffer::ByteBuffer(size_t capacity_bytes) : owner_(nullptr), capacity_(capacity_bytes) {
  void* memory = std::malloc(sizeof(Block) + capacity_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  owner_ = new (memory) Block;
}

ByteBuffer::~ByteBuffer() {
  if (owner_ != nullptr) owner_->drop_ref();
}

char* ByteBuffer::data() noexcept { return owner_->data(); }

Bytes ByteBuffer::take(size_t size) && noexcept {
  Block* block = std::exchange(owner_, nullptr);
  return Bytes::adopt(block->data(), std::min(size, capacity_), block);
}

namespace {

struct StringOwner final : BytesOwner {
  explicit StringOwner(std::string text_in) : BytesOwner(&StringOwner::destroy), text(std::move(text_in)) {}
  static void destroy(BytesOwner* owner) noexcept { delete static_cast<StringOwner*>(owner); }
  std::string text;
};

}  // namespace

Bytes Bytes::copy(std::string_view text) {
  ByteBuffer buffer(text.size());
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), text.size());
  return std::move(buffer).take(text.size());
}

Bytes Bytes::from_string(std::string text) {
  auto* owner = new StringOwner(std::move(text));
  return adopt(owner->text.data(), owner->text.size(), owner);
}

Bytes Bytes::slice(size_t offset, size_t size) const& noexcept { return Bytes(*this).slice(offset, size); }

Bytes Bytes::slice(size_t offset, size_t size) && noexcept {
  if (offset >= size_) return {};
  return Bytes(data_ + offset, std::min(size, size_ - offset), std::exchange(owner_, nullptr));
}

}  // namespace ragfs
