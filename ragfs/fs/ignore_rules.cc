#include "ragfs/fs/ignore_rules.h"

#include <optional>
#include <ranges>
#include <string>

namespace ragfs {
namespace {

// git has no braces in its patterns: they stand for themselves.
std::string without_braces(std::string_view pattern) {
  std::string text;
  bool escaped = false;
  bool in_class = false;
  for (const char c : pattern) {
    if (!escaped && !in_class && (c == '{' || c == '}')) text += '\\';
    in_class = !escaped && (c == '[' || (in_class && c != ']'));
    escaped = !escaped && c == '\\';
    text += c;
  }
  return text;
}

// The line without its ending and without blanks at its end that are not escaped.
std::string_view trim(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') && !line.ends_with("\\ ")) line.remove_suffix(1);
  return line;
}

}  // namespace

IgnoreRules IgnoreRules::parse(std::string_view text) {
  IgnoreRules rules;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty() && rules.rules_.size() < kMaxRules) {
    const size_t newline = text.find('\n');
    std::string_view line = trim(text.substr(0, newline));
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    if (line.empty() || line.front() == '#') continue;
    const bool keep = line.front() == '!';
    if (keep) line.remove_prefix(1);
    const bool only_dirs = line.ends_with('/');
    if (only_dirs) line.remove_suffix(1);
    if (line.empty()) continue;
    // A slash at the start or within ties the pattern to this directory; without one it means any depth.
    const bool anchored = line.find('/') != std::string_view::npos;
    Result<GlobPattern> pattern = GlobPattern::parse((anchored ? "" : "**/") + without_braces(line));
    if (pattern) rules.rules_.push_back({std::move(*pattern), keep, only_dirs});
  }
  return rules;
}

IgnoreRules::Verdict IgnoreRules::judge(std::string_view rel_path, bool is_dir) const {
  for (const Rule& rule : std::views::reverse(rules_)) {
    if (rule.only_dirs && !is_dir) continue;
    if (rule.pattern.match(rel_path).matches) return rule.keep ? Verdict::keep : Verdict::ignore;
  }
  return Verdict::none;
}

}  // namespace ragfs
