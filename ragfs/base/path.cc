#include "ragfs/base/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

namespace ragfs {
namespace {

// What is wrong with one component, or "" when nothing is.
std::string_view component_fault(std::string_view name) {
  if (name == "..") return "'..' is not allowed";
  if (name.size() > kMaxNameBytes) return "a name is longer than 255 bytes";
  if (std::memchr(name.data(), '\0', name.size()) != nullptr) return "NUL is not allowed";
  return {};
}

std::unexpected<Error> refuse(std::string_view raw, std::string_view why) {
  constexpr size_t kShownBytes = 300;  // an error line stays readable, whatever was passed
  std::string shown(raw.substr(0, kShownBytes));
  std::ranges::replace(shown, '\0', '?');
  if (raw.size() > kShownBytes) shown += "...";
  return fail(ErrorCode::invalid_path, fmt::format("{} ({})", shown, why));
}

// The high bit of every byte of the eight at `at` that is a slash; the first of them is the lowest.
uint64_t slashes_in(const char* at) noexcept {
  constexpr uint64_t kSevenBits = 0x7f7f7f7f7f7f7f7f;
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const uint64_t zero_where_slash = word ^ 0x2f2f2f2f2f2f2f2f;
  return ~(((zero_where_slash & kSevenBits) + kSevenBits) | zero_where_slash | kSevenBits);
}
static_assert(std::endian::native == std::endian::little, "the first byte is the lowest");

}  // namespace

bool PathView::is_normal(std::string_view text) noexcept {
  if (text.empty() || text.front() != '/' || text.size() > kMaxPathBytes) return false;
  if (text.size() == 1) return true;
  if (std::memchr(text.data(), '\0', text.size()) != nullptr) return false;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  while (true) {
    const auto* slash = static_cast<const char*>(std::memchr(at, '/', static_cast<size_t>(end - at)));
    const char* const stop = slash == nullptr ? end : slash;
    const size_t length = static_cast<size_t>(stop - at);
    if (length == 0 || length > kMaxNameBytes) return false;
    if (*at == '.' && (length == 1 || (length == 2 && at[1] == '.'))) return false;
    if (slash == nullptr) return true;
    at = slash + 1;
  }
}

PathView PathView::from_normal(std::string_view text) noexcept {
  assert(is_normal(text));
  return PathView(text);
}

std::string_view PathView::name() const noexcept {
  // Looked at on every hit, and most names are short: the last two words first.
  constexpr size_t kWordBytes = sizeof(uint64_t);
  for (size_t back = kWordBytes; back <= 2 * kWordBytes && back <= text_.size(); back += kWordBytes) {
    const uint64_t slashes = slashes_in(text_.data() + text_.size() - back);
    if (slashes != 0) return text_.substr(text_.size() - back + kWordBytes - std::countl_zero(slashes) / 8);
  }
  const auto* slash = static_cast<const char*>(::memrchr(text_.data(), '/', text_.size()));
  return text_.substr(static_cast<size_t>(slash + 1 - text_.data()));
}

PathView PathView::parent() const noexcept {
  const size_t slash = text_.rfind('/');
  return slash == 0 ? PathView() : PathView(text_.substr(0, slash));
}

size_t PathView::depth() const noexcept {
  return is_root() ? 0 : static_cast<size_t>(std::count(text_.begin(), text_.end(), '/'));
}

size_t PathView::prefix_bytes(size_t components) const noexcept {
  if (components == 0) return 1;
  size_t left = components;  // slashes to pass; the one after them ends the prefix
  size_t at = 0;
  for (; at + sizeof(uint64_t) <= text_.size(); at += sizeof(uint64_t)) {
    for (uint64_t slashes = slashes_in(text_.data() + at); slashes != 0; slashes &= slashes - 1) {
      if (left-- == 0) return at + static_cast<size_t>(std::countr_zero(slashes)) / 8;
    }
  }
  for (; at < text_.size(); ++at) {
    if (text_[at] == '/' && left-- == 0) return at;
  }
  return text_.size();
}

bool PathView::is_within(PathView ancestor) const noexcept {
  if (ancestor.is_root()) return true;
  const std::string_view base = ancestor.text_;
  if (!text_.starts_with(base)) return false;
  return text_.size() == base.size() || text_[base.size()] == '/';
}

PathView PathView::relative_to(PathView ancestor) const noexcept {
  assert(is_within(ancestor));
  if (ancestor.is_root()) return *this;
  if (text_.size() == ancestor.text_.size()) return {};
  return PathView(text_.substr(ancestor.text_.size()));
}

Result<Path> Path::parse(std::string_view raw) {
  std::string text;
  text.reserve(raw.size() + 1);
  size_t at = 0;
  while (at <= raw.size()) {
    const size_t slash = std::min(raw.find('/', at), raw.size());
    const std::string_view name = raw.substr(at, slash - at);
    at = slash + 1;
    if (name.empty() || name == ".") continue;
    if (const std::string_view fault = component_fault(name); !fault.empty()) return refuse(raw, fault);
    text += '/';
    text += name;
  }
  if (text.empty()) text = "/";
  if (text.size() > kMaxPathBytes) return refuse(raw, "the path is longer than 4095 bytes");
  return Path(std::move(text));
}

Result<Path> Path::join(PathView parent, std::string_view name) {
  if (name.empty() || name == "." || name.find('/') != std::string_view::npos) return refuse(name, "not a name");
  if (const std::string_view fault = component_fault(name); !fault.empty()) return refuse(name, fault);
  std::string text;
  text.reserve(parent.text().size() + 1 + name.size());
  if (!parent.is_root()) text = parent.text();
  text += '/';
  text += name;
  if (text.size() > kMaxPathBytes) return refuse(text, "the path is longer than 4095 bytes");
  return Path(std::move(text));
}

Result<Path> Path::concat(PathView base, PathView below) {
  if (base.is_root()) return Path(below);
  std::string text(base.text());
  if (!below.is_root()) text += below.text();
  if (text.size() > kMaxPathBytes) return refuse(text, "the path is longer than 4095 bytes");
  return Path(std::move(text));
}

Result<PathArg> PathArg::parse(std::string_view raw) {
  PathArg arg;
  if (PathView::is_normal(raw)) {
    arg.raw_ = raw;
    return arg;
  }
  auto path = Path::parse(raw);
  if (!path) return std::unexpected(std::move(path.error()));
  arg.owned_ = path->text();
  return arg;
}

}  // namespace ragfs
