// Path and PathView: a virtual path in its one spelling.
//
// A normalised path begins with '/', has no empty, "." or ".." component, no NUL, no trailing '/' (but the root "/"),
// names of at most 255 bytes, at most 4,095 bytes in all. Bytes are kept as they are: bytes that are not UTF-8 are
// carried, and NFC and NFD spellings stay two paths. Everything below the interfaces takes a PathView, so a path is
// checked once, where it enters. PathView does not own its text; Path does.
// Not for: paths of the host (those are std::string or std::filesystem::path).
// Thread-safety: values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs {

inline constexpr size_t kMaxNameBytes = 255;
inline constexpr size_t kMaxPathBytes = 4095;

class PathView {
 public:
  // The root.
  constexpr PathView() = default;

  // True when `text` already is the one spelling, so that it can be used as it stands. No allocation.
  static bool is_normal(std::string_view text) noexcept;
  // `text` must be normal (asserted in debug builds).
  static PathView from_normal(std::string_view text) noexcept;

  constexpr std::string_view text() const noexcept { return text_; }
  constexpr bool is_root() const noexcept { return text_.size() == 1; }
  // The last component; "" for the root.
  std::string_view name() const noexcept;
  // The path without its last component; the root's parent is the root.
  PathView parent() const noexcept;
  // Number of components; 0 for the root.
  size_t depth() const noexcept;
  // Length in bytes of the ancestor that has `components` components, or of the whole path when it has no more.
  size_t prefix_bytes(size_t components) const noexcept;
  // True for this == ancestor and for everything below it. "/ab" is not within "/a".
  bool is_within(PathView ancestor) const noexcept;
  // This path as seen from `ancestor` (which it must be within): "/a/b" from "/a" is "/b", "/a" from "/a" is "/".
  PathView relative_to(PathView ancestor) const noexcept;

  friend bool operator==(PathView a, PathView b) noexcept { return a.text_ == b.text_; }
  friend auto operator<=>(PathView a, PathView b) noexcept { return a.text_ <=> b.text_; }

 private:
  friend class Path;
  constexpr explicit PathView(std::string_view text) : text_(text) {}
  std::string_view text_ = "/";
};

class Path {
 public:
  // The root.
  Path() : text_("/") {}
  explicit Path(PathView view) : text_(view.text()) {}

  // Normalises: adds a missing leading '/', folds "//" and "/./", drops trailing '/'. "" is the root.
  // Errors: invalid_path for "..", NUL, a name over 255 bytes, a path over 4,095 bytes.
  static Result<Path> parse(std::string_view raw);
  // A child of `parent`. Errors: invalid_path when `name` is empty, ".", "..", has '/' or NUL, or is too long.
  static Result<Path> join(PathView parent, std::string_view name);
  // `below` (as made by relative_to) seen from under `base`: ("/m", "/a") is "/m/a". Errors: invalid_path if too long.
  static Result<Path> concat(PathView base, PathView below);

  PathView view() const noexcept { return PathView(text_); }
  operator PathView() const noexcept { return view(); }  // NOLINT(google-explicit-constructor): a Path is a PathView
  const std::string& text() const noexcept { return text_; }

  friend bool operator==(const Path& a, const Path& b) noexcept { return a.text_ == b.text_; }
  friend auto operator<=>(const Path& a, const Path& b) noexcept { return a.text_ <=> b.text_; }

 private:
  explicit Path(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// A path argument as an interface received it: uses the caller's text when it is normal already, else a normalised
// copy. The caller's text must outlive this object.
class PathArg {
 public:
  static Result<PathArg> parse(std::string_view raw);
  PathView view() const noexcept {
    return owned_.empty() ? PathView::from_normal(raw_) : PathView::from_normal(owned_);
  }
  operator PathView() const noexcept { return view(); }  // NOLINT(google-explicit-constructor)

 private:
  PathArg() = default;
  std::string_view raw_;
  std::string owned_;
};

}  // namespace ragfs
