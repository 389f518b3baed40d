// Path::parse against any bytes: what it accepts is normal, parses to itself and stays inside the tree.
#include <cstdlib>
#include <string>
#include <string_view>

#include "ragfs/base/path.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ragfs::Path;
  using ragfs::PathView;
  const std::string_view raw(reinterpret_cast<const char*>(data), size);
  const bool normal = PathView::is_normal(raw);
  const auto path = Path::parse(raw);
  if (!path) {
    require(!normal);
    return 0;
  }
  const std::string_view text = path->text();
  require(PathView::is_normal(text));
  require(!normal || text == raw);
  require(Path::parse(text)->text() == text);
  require(text.size() <= ragfs::kMaxPathBytes && text.find('\0') == std::string_view::npos);
  require((std::string(text) + "/").find("/../") == std::string::npos);
  const PathView view = PathView::from_normal(text);
  require(view.is_within(view.parent()) && view.is_within(PathView()));
  require(view.is_root() == (view.depth() == 0));
  require(view.relative_to(PathView()).text() == text);
  return 0;
}
