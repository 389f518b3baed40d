// Bytes: a reference-counted, immutable slice of memory.
//
// For: handing file contents and cache objects around without copying. A DRAM hit returns a Bytes that pins the cache
// entry; slicing it costs one reference. Not for: building content (use std::string or ByteBuffer, then take it over).
//
// Thread-safety: distinct Bytes of one buffer may be used from any threads (the count is atomic); one Bytes object is
// not synchronised. The memory behind it never changes while any Bytes refers to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ragfs {

// What keeps the memory of a Bytes alive. A cache entry derives from it, so that pinning the entry is one increment.
// `release` runs when the last reference is dropped, on the thread that dropped it, and must not block.
class BytesOwner {
 public:
  using Release = void (*)(BytesOwner*) noexcept;
  explicit BytesOwner(Release release) : release_(release) {}
  BytesOwner(const BytesOwner&) = delete;
  BytesOwner& operator=(const BytesOwner&) = delete;

  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Takes a reference only while others exist: for an owner found in an index without a lock.
  bool try_add_ref() noexcept {
    uint32_t seen = refs_.load(std::memory_order_relaxed);
    while (seen != 0) {
      if (refs_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  void drop_ref() noexcept {
    // acq_rel: what other holders did with the memory happens before its release.
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) release_(this);
  }
  uint32_t refs() const noexcept { return refs_.load(std::memory_order_relaxed); }

  // A word that the cache may leave with the object ("validated through clock N"); 0 when nothing was left.
  std::atomic<uint64_t>& note() noexcept { return note_; }

 protected:
  ~BytesOwner() = default;

  // For owners in memory that is reused in place while try_add_ref() may still look at it: begins a new life of an
  // owner whose count is 0 (zeroed memory is one). What was written to the memory before is seen by whoever adds a
  // reference.
  void revive(Release release) noexcept {
    note_.store(0, std::memory_order_relaxed);
    release_ = release;
    refs_.store(1, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> note_{0};
  Release release_;
  std::atomic<uint32_t> refs_{1};
};

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(const Bytes& other) noexcept : data_(other.data_), size_(other.size_), owner_(other.owner_) {
    if (owner_ != nullptr) owner_->add_ref();
  }
  Bytes(Bytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        owner_(std::exchange(other.owner_, nullptr)) {}
  Bytes& operator=(Bytes other) noexcept {
    swap(other);
    return *this;
  }
  ~Bytes() {
    if (owner_ != nullptr) owner_->drop_ref();
  }

  // Copies `text` into memory of its own.
  static Bytes copy(std::string_view text);
  // Takes a string over without copying its characters.
  static Bytes from_string(std::string text);
  // Wraps memory that `owner` keeps alive; takes over one reference that the caller holds.
  static Bytes adopt(const char* data, size_t size, BytesOwner* owner) noexcept { return Bytes(data, size, owner); }
  // Memory that outlives every Bytes, such as a literal.
  static Bytes from_static(std::string_view text) noexcept { return Bytes(text.data(), text.size(), nullptr); }

  const char* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::string_view view() const noexcept { return {data_, size_}; }
  std::string str() const { return std::string(view()); }

  // The bytes from `offset` on, at most `size` of them; empty when offset is past the end. Shares the memory.
  Bytes slice(size_t offset, size_t size = SIZE_MAX) const& noexcept;
  // The same out of a Bytes that is not needed any more: hands its reference over instead of taking one.
  Bytes slice(size_t offset, size_t size = SIZE_MAX) && noexcept;

  // The owner's note, or nullptr where nothing owns the memory.
  std::atomic<uint64_t>* note() const noexcept { return owner_ == nullptr ? nullptr : &owner_->note(); }

  void swap(Bytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owner_, other.owner_);
  }
  friend bool operator==(const Bytes& a, const Bytes& b) noexcept { return a.view() == b.view(); }

 private:
  Bytes(const char* data, size_t size, BytesOwner* owner) noexcept : data_(data), size_(size), owner_(owner) {}

  const char* data_ = nullptr;
  size_t size_ = 0;
  BytesOwner* owner_ = nullptr;
};

// Memory that is filled once and then becomes Bytes without a copy (a read buffer).
// Not zeroed at start. Not synchronised.
class ByteBuffer {
 public:
  // Never fails for sizes the process can allocate; a size of 0 gives an empty buffer.
  explicit ByteBuffer(size_t capacity_bytes);
  ByteBuffer(ByteBuffer&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), capacity_(other.capacity_) {}
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ByteBuffer& operator=(ByteBuffer&&) = delete;
  ~ByteBuffer();

  char* data() noexcept;
  size_t capacity() const noexcept { return capacity_; }
  // The first `size` bytes (<= capacity) as Bytes; the buffer is empty afterwards.
  Bytes take(size_t size) && noexcept;

 private:
  struct Block;
  Block* owner_;
  size_t capacity_;
};

}  // namespace ragfs
