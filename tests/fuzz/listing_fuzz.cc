// Packed listings: any bytes are read or refused without leaving them; what was packed is found again, name by name.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cache/listing_codec.h"

namespace {

using ragfs::FileInfo;
using ragfs::FileKind;
using ragfs::ListingView;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_foreign(std::string_view bytes) {
  for (const bool check : {false, true}) {
    const auto view = ListingView::parse(bytes, check);
    if (!view) continue;
    require(view->size() <= bytes.size());
    const std::vector<FileInfo> entries = view->entries();
    require(entries.size() == view->size());
    if (!entries.empty()) (void)view->find(entries.front().name);
    (void)view->find("");
  }
}

// A name for each line of the text.
void round_trip(std::string_view text) {
  std::vector<FileInfo> entries;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    FileInfo info;
    info.name = name;
    info.size = name.size() * 3;
    info.mode = static_cast<uint32_t>(entries.size());
    info.mtime_ns = -static_cast<int64_t>(name.size());
    info.kind = static_cast<FileKind>(name.size() % 3);
    const auto same = [&](const FileInfo& other) { return other.name == info.name; };
    if (std::ranges::none_of(entries, same)) entries.push_back(std::move(info));
  }
  ragfs::sort_entries(entries);
  const std::string packed = ragfs::pack_listing(entries);
  const auto view = ListingView::parse(packed, true);
  require(view.has_value() && view->entries() == entries);
  for (const FileInfo& entry : entries) {
    const auto found = view->find(entry.name);
    require(found.has_value() && *found == entry);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_foreign(bytes);
  round_trip(bytes);
  return 0;
}
