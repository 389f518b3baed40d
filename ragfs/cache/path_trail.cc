#include "ragfs/cache/path_trail.h"

#include <cassert>
#include <cstring>

namespace ragfs {

PathTrail::PathTrail(uint64_t root_id, PathView path) {
  inline_[0] = root_id;
  if (path.is_root()) {
    text_id_ = text_id(root_id, path);
    return;
  }
  const std::string_view text = path.text();
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    const auto* slash = static_cast<const char*>(std::memchr(at, '/', static_cast<size_t>(end - at)));
    const char* const stop = slash == nullptr ? end : slash;
    if (size_ < kInlineIds) {
      inline_[size_] = hash64({text.data(), static_cast<size_t>(stop - text.data())}, root_id);
    } else {
      if (spilled_.empty()) spilled_.assign(inline_.begin(), inline_.end());
      spilled_.push_back(hash64({at, static_cast<size_t>(stop - at)}, spilled_.back()));
    }
    ++size_;
    if (slash == nullptr) break;
    at = slash + 1;
  }
  text_id_ = spilled_.empty() ? inline_[size_ - 1] : text_id(root_id, path);
}

uint64_t PathTrail::id_at(uint64_t root_id, PathView path, size_t depth) {
  if (depth == 0 || path.is_root()) return root_id;
  assert(depth < kInlineIds);
  return hash64(path.text().substr(0, path.prefix_bytes(depth)), root_id);
}

}  // namespace ragfs
