// MemContent: the bytes of one file of memfs.
//
// For: handing out immutable Bytes of a file without a copy while later writes give the file new bytes. Appending is
// amortised O(appended bytes): new bytes go behind those that readers hold, where no reader can see them.
// Not for: counting capacity (MemFileSystem does that).
//
// Thread-safety: one object is not synchronised (the file system's lock is); the Bytes it hands out are independent.
// Copies share memory until one of them is changed.
#pragma once

#include <cstdint>
#include <string_view>

#include "ragfs/base/bytes.h"

namespace ragfs {

class MemContent {
 public:
  MemContent() = default;

  uint64_t size() const noexcept { return whole_.size(); }
  std::string_view view() const noexcept { return whole_.view(); }
  // As FileSystem::read: size 0 = to the end; past the end = empty.
  Bytes read(uint64_t offset, uint64_t size) const noexcept;

  // Each of these changes nothing and returns false when memory cannot be had.
  bool assign(std::string_view data);
  bool append(std::string_view data);
  // Overwrites at `offset`; a gap becomes zeros.
  bool write_at(uint64_t offset, std::string_view data);
  bool resize(uint64_t size);

 private:
  struct Buffer;
  // A fresh buffer that begins with the first `kept_bytes` of this content, then zeros up to `size`.
  Buffer* fresh(uint64_t capacity, uint64_t kept_bytes, uint64_t size) const;
  // Takes over one reference to `buffer`.
  void adopt(Buffer* buffer) noexcept;

  Bytes whole_;  // keeps buffer_ alive
  Buffer* buffer_ = nullptr;
};

}  // namespace ragfs
