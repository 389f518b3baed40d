#include "ragfs/cache/path_trail.h"

#include <algorithm>
#include <cstring>

namespace ragfs {

PathTrail::PathTrail(uint64_t root_id, PathView path) {
  inline_[0] = root_id;
  if (path.is_root()) return;
  const std::string_view text = path.text();
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  uint64_t id = root_id;
  while (true) {
    const auto* slash = static_cast<const char*>(std::memchr(at, '/', static_cast<size_t>(end - at)));
    const char* const stop = slash == nullptr ? end : slash;
    id = hash64({at, static_cast<size_t>(stop - at)}, id);
    if (size_ < kInlineIds) {
      inline_[size_] = id;
    } else {
      if (spilled_.empty()) spilled_.assign(inline_.begin(), inline_.end());
      spilled_.push_back(id);
    }
    ++size_;
    if (slash == nullptr) return;
    at = slash + 1;
  }
}

uint64_t PathTrail::id_at(uint64_t root_id, PathView path, size_t depth) {
  if (path.is_root()) return root_id;
  const std::string_view text = path.text();
  uint64_t id = root_id;
  size_t at = 1;
  for (size_t i = 0; i < depth && at <= text.size(); ++i) {
    const size_t stop = std::min(text.find('/', at), text.size());
    id = hash64(text.substr(at, stop - at), id);
    at = stop + 1;
  }
  return id;
}

PathTrail PathTrail::ancestor(size_t size) const {
  PathTrail result;
  result.size_ = size;
  if (size <= kInlineIds) {
    std::copy_n(ids(), size, result.inline_.begin());
  } else {
    result.spilled_.assign(ids(), ids() + size);
  }
  return result;
}

}  // namespace ragfs
