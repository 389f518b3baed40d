#include "ragfs/fs/names.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <array>

#include "ragfs/fs/utf8.h"

namespace ragfs {
namespace {

constexpr std::array<std::string_view, 3> kInternalNames = {".path.ovlock", ".redirect.json", ".sync_log.json"};
constexpr std::string_view kExactLockPrefix = ".exact.ovlock.";

// Case rules of Unicode, whatever locale the process runs in; null where the system has no such locale.
locale_t unicode_rules() {
  static const locale_t rules = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return rules;
}

constexpr unsigned char ascii_lower(unsigned char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

char32_t lower(char32_t code) {
  if (code < 0x80) return ascii_lower(static_cast<unsigned char>(code));
  const locale_t rules = unicode_rules();
  if (code > kMaxCodePoint || rules == nullptr) return code;
  return static_cast<char32_t>(towlower_l(static_cast<wint_t>(code), rules));
}

}  // namespace

bool is_internal_name(std::string_view name) {
  if (!name.starts_with('.')) return false;
  return name.starts_with(kExactLockPrefix) || std::ranges::find(kInternalNames, name) != kInternalNames.end();
}

std::strong_ordering compare_listing_names(std::string_view a, std::string_view b) {
  std::string_view left = a;
  std::string_view right = b;
  while (!left.empty() && !right.empty()) {
    const char32_t x = lower(take_code_point(left));
    const char32_t y = lower(take_code_point(right));
    if (x != y) return x <=> y;
  }
  if (left.empty() != right.empty()) return right.empty() <=> left.empty();
  return a <=> b;
}

}  // namespace ragfs
