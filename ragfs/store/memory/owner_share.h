// OwnerShare: who owns the objects of a memory tier, how many bytes each owner has there, and who has more than a
// share.
//
// For: MemoryTier, where several tenants use one budget: while memory is full, an owner above its share pays for its
// new objects with its own. Owners are told apart by a hash of part of the key; the few that fall into one slot share
// a share. Not for: limits while there is room (one owner may have everything then), or accounts to bill.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

namespace ragfs {

// 64 well-mixed bits of the part of a key that names its owner.
using OwnerOf = uint64_t (*)(std::string_view key);

class OwnerShare {
 public:
  // `owner_of` nullptr: nobody has a share.
  OwnerShare(OwnerOf owner_of, uint64_t share_bytes)
      : owner_of_(owner_of), share_bytes_(static_cast<int64_t>(share_bytes)) {
    if (owner_of_ != nullptr) bytes_ = std::make_unique<Slots>();
  }

  bool counts() const noexcept { return owner_of_ != nullptr; }
  static constexpr uint64_t memory_bytes() { return sizeof(Slots); }

  void add(std::string_view key, int64_t bytes) noexcept {
    if (counts()) cell(key).fetch_add(bytes, std::memory_order_relaxed);
  }
  bool is_over(std::string_view key) const noexcept {
    return counts() && cell(key).load(std::memory_order_relaxed) > share_bytes_;
  }
  bool same_owner(std::string_view a, std::string_view b) const noexcept { return &cell(a) == &cell(b); }

 private:
  static constexpr size_t kSlots = 4096;
  using Slots = std::array<std::atomic<int64_t>, kSlots>;
  std::atomic<int64_t>& cell(std::string_view key) const noexcept { return (*bytes_)[owner_of_(key) % kSlots]; }

  const OwnerOf owner_of_;
  const int64_t share_bytes_;
  std::unique_ptr<Slots> bytes_;
};

// Whose objects an eviction may take.
struct EvictionScope {
  const OwnerShare* shares = nullptr;  // nullptr: anybody's
  std::string_view key;                // else those of this key's owner

  bool covers(std::string_view other) const noexcept { return shares == nullptr || shares->same_owner(key, other); }
};

}  // namespace ragfs
