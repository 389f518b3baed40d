#include "ragfs/cache/listing_codec.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ragfs {
namespace {

// Layout: u32 count | count x u32 offset, in order | count x u32 offset, sorted by name | entries.
struct EntryHead {
  uint64_t size;
  int64_t mtime_ns;
  uint32_t mode;
  uint16_t name_size;
  uint8_t kind;
  uint8_t reserved;
};
static_assert(sizeof(EntryHead) == 24);

uint32_t load_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void append_u32(std::string& out, size_t value) {
  const auto narrow = static_cast<uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&narrow), sizeof narrow);
}

}  // namespace

std::string pack_listing(const std::vector<FileInfo>& entries) {
  const size_t index_end = sizeof(uint32_t) * (1 + 2 * entries.size());
  std::vector<size_t> offsets;
  offsets.reserve(entries.size());
  size_t total = index_end;
  for (const FileInfo& entry : entries) {
    offsets.push_back(total);
    total += sizeof(EntryHead) + entry.name.size();
  }
  std::vector<uint32_t> by_name(entries.size());
  std::iota(by_name.begin(), by_name.end(), 0U);
  std::ranges::sort(by_name, [&](uint32_t a, uint32_t b) { return entries[a].name < entries[b].name; });

  std::string out;
  out.reserve(total);
  append_u32(out, entries.size());
  for (const size_t offset : offsets) append_u32(out, offset);
  for (const uint32_t index : by_name) append_u32(out, offsets[index]);
  for (const FileInfo& entry : entries) {
    EntryHead head{};
    head.size = entry.size;
    head.mtime_ns = entry.mtime_ns;
    head.mode = entry.mode;
    head.name_size = static_cast<uint16_t>(entry.name.size());
    head.kind = static_cast<uint8_t>(entry.kind);
    out.append(reinterpret_cast<const char*>(&head), sizeof head);
    out.append(entry.name);
  }
  return out;
}

std::optional<ListingView> ListingView::parse(std::string_view packed, bool check_entries) {
  if (packed.size() < sizeof(uint32_t)) return std::nullopt;
  const uint32_t count = load_u32(packed, 0);
  const uint64_t index_end = sizeof(uint32_t) * (1 + 2 * static_cast<uint64_t>(count));
  if (packed.size() < index_end) return std::nullopt;
  const ListingView view(packed, count);
  if (!check_entries) return view;
  for (size_t i = 0; i < count; ++i) {
    if (!view.holds_entry(view.offset_in_order(i)) || !view.holds_entry(view.offset_by_name(i))) return std::nullopt;
  }
  return view;
}

bool ListingView::holds_entry(uint32_t offset) const {
  const uint64_t index_end = sizeof(uint32_t) * (1 + 2 * static_cast<uint64_t>(count_));
  if (offset < index_end || uint64_t{offset} + sizeof(EntryHead) > packed_.size()) return false;
  EntryHead head;
  std::memcpy(&head, packed_.data() + offset, sizeof head);
  return uint64_t{offset} + sizeof head + head.name_size <= packed_.size() &&
         head.kind <= static_cast<uint8_t>(FileKind::other);
}

uint32_t ListingView::offset_in_order(size_t index) const { return load_u32(packed_, sizeof(uint32_t) * (1 + index)); }

uint32_t ListingView::offset_by_name(size_t index) const {
  return load_u32(packed_, sizeof(uint32_t) * (1 + count_ + index));
}

std::string_view ListingView::name_at(uint32_t offset) const {
  if (!holds_entry(offset)) return {};
  EntryHead head;
  std::memcpy(&head, packed_.data() + offset, sizeof head);
  return packed_.substr(offset + sizeof head, head.name_size);
}

FileInfo ListingView::info_at(uint32_t offset) const {
  if (!holds_entry(offset)) return {};
  EntryHead head;
  std::memcpy(&head, packed_.data() + offset, sizeof head);
  return FileInfo{.name = std::string(packed_.substr(offset + sizeof head, head.name_size)),
                  .size = head.size,
                  .mode = head.mode,
                  .mtime_ns = head.mtime_ns,
                  .kind = static_cast<FileKind>(head.kind)};
}

FileInfo ListingView::entry(size_t index) const { return info_at(offset_in_order(index)); }

std::vector<FileInfo> ListingView::entries() const {
  std::vector<FileInfo> result;
  result.reserve(count_);
  for (size_t i = 0; i < count_; ++i) result.push_back(entry(i));
  return result;
}

std::optional<FileInfo> ListingView::find(std::string_view name) const {
  size_t low = 0;
  size_t high = count_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const uint32_t offset = offset_by_name(middle);
    const std::string_view at = name_at(offset);
    if (at == name) return info_at(offset);
    if (at < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

}  // namespace ragfs
