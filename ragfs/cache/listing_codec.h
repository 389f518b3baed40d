// Packed listings: the payload of a listing object (docs/formats.md, "Packed listing").
//
// Entries stand in display order (sort_entries); an index sorted by name makes the look-up of one name O(log n) without
// decoding the rest. Not for: filtering or permissions: a listing holds the backend's raw entries.
// Thread-safety: pure functions; a ListingView borrows the bytes it was made from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/fs/file_system.h"

namespace ragfs {

// `entries` must be sorted by sort_entries. Names are at most 65,535 bytes.
std::string pack_listing(const std::vector<FileInfo>& entries);

class ListingView {
 public:
  // An empty optional when the bytes are not a packed listing. `check_entries` looks at every entry, once, in O(n): for
  // bytes from outside. Without it (bytes whose checksum was verified) only the sizes of the indexes are checked; an
  // entry that lies outside the bytes then reads as an empty name.
  static std::optional<ListingView> parse(std::string_view packed, bool check_entries);

  size_t size() const { return count_; }
  FileInfo entry(size_t index) const;
  std::vector<FileInfo> entries() const;
  std::optional<FileInfo> find(std::string_view name) const;

 private:
  ListingView(std::string_view packed, uint32_t count) : packed_(packed), count_(count) {}
  uint32_t offset_in_order(size_t index) const;
  uint32_t offset_by_name(size_t index) const;
  bool holds_entry(uint32_t offset) const;
  std::string_view name_at(uint32_t offset) const;
  FileInfo info_at(uint32_t offset) const;

  std::string_view packed_;
  uint32_t count_;
};

}  // namespace ragfs
