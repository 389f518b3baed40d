#include "ragfs/backends/mem/mem_content.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ragfs {

// The owner, then the bytes. `used` is written only under the lock of the file system, and only grows.
struct MemContent::Buffer final : BytesOwner {
  explicit Buffer(size_t capacity_in) : BytesOwner(&Buffer::destroy), capacity(capacity_in) {}
  char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
  static void destroy(BytesOwner* owner) noexcept {
    auto* buffer = static_cast<Buffer*>(owner);
    buffer->~Buffer();
    std::free(buffer);
  }
  const size_t capacity;
  size_t used = 0;
};

Bytes MemContent::read(uint64_t offset, uint64_t size) const noexcept {
  if (offset >= whole_.size()) return {};
  return whole_.slice(offset, size == 0 ? SIZE_MAX : size);
}

MemContent::Buffer* MemContent::fresh(uint64_t capacity, uint64_t kept_bytes, uint64_t size) const {
  if (capacity > SIZE_MAX - sizeof(Buffer)) return nullptr;
  void* memory = std::malloc(sizeof(Buffer) + capacity);
  if (memory == nullptr) return nullptr;
  auto* buffer = new (memory) Buffer(capacity);
  if (kept_bytes > 0) std::memcpy(buffer->data(), whole_.data(), kept_bytes);
  if (size > kept_bytes) std::memset(buffer->data() + kept_bytes, 0, size - kept_bytes);
  buffer->used = size;
  return buffer;
}

void MemContent::adopt(Buffer* buffer) noexcept {
  whole_ = Bytes::adopt(buffer->data(), buffer->used, buffer);
  buffer_ = buffer;
}

bool MemContent::assign(std::string_view data) {
  Buffer* buffer = fresh(data.size(), 0, 0);
  if (buffer == nullptr) return false;
  if (!data.empty()) std::memcpy(buffer->data(), data.data(), data.size());
  buffer->used = data.size();
  adopt(buffer);
  return true;
}

bool MemContent::append(std::string_view data) {
  if (data.empty()) return true;
  const uint64_t old_size = size();
  // Only the content that reaches to the end of the used part may grow in place: a copy or an older, longer content of
  // this buffer would otherwise see its bytes change.
  const bool in_place =
      buffer_ != nullptr && old_size == buffer_->used && buffer_->capacity - buffer_->used >= data.size();
  Buffer* buffer = buffer_;
  if (in_place) {
    buffer->add_ref();
  } else {
    const uint64_t slack = std::max<uint64_t>(old_size / 2, 64);
    buffer = fresh(old_size + data.size() + slack, old_size, old_size);
    if (buffer == nullptr) return false;
  }
  std::memcpy(buffer->data() + old_size, data.data(), data.size());
  buffer->used = old_size + data.size();
  adopt(buffer);
  return true;
}

bool MemContent::write_at(uint64_t offset, std::string_view data) {
  if (data.empty()) return true;  // as pwrite does: writing nothing extends nothing
  if (offset == size()) return append(data);
  const uint64_t new_size = std::max(size(), offset + data.size());
  Buffer* buffer = fresh(new_size, size(), new_size);
  if (buffer == nullptr) return false;
  std::memcpy(buffer->data() + offset, data.data(), data.size());
  adopt(buffer);
  return true;
}

bool MemContent::resize(uint64_t new_size) {
  if (new_size == size()) return true;
  Buffer* buffer = fresh(new_size, std::min(size(), new_size), new_size);
  if (buffer == nullptr) return false;
  adopt(buffer);
  return true;
}

}  // namespace ragfs
