#include "ragfs/config/section_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace ragfs {
namespace {

void report_error(ParseReport& report, int line, const std::string& field, std::string_view what) {
  if (report.errors.size() >= kMaxReported) return;
  report.errors.push_back(fmt::format("{}:{}: {}: {}", report.file, line, field, what));
}

// Edit distance, with a swap of neighbours as one step; for words of at most 64 characters.
size_t distance(std::string_view a, std::string_view b) {
  if (a.size() > 64 || b.size() > 64) return 64;
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string number_text(double value) {
  return value == std::floor(value) && std::abs(value) < 1e18 ? fmt::format("{}", static_cast<int64_t>(value))
                                                              : fmt::format("{}", value);
}

std::string range_text(const Field& field) {
  const bool low = field.min > std::numeric_limits<double>::lowest();
  const bool high = field.max < std::numeric_limits<double>::max();
  if (low && high) return fmt::format(" from {} to {}", number_text(field.min), number_text(field.max));
  if (low) return fmt::format(" of at least {}", number_text(field.min));
  if (high) return fmt::format(" of at most {}", number_text(field.max));
  return "";
}

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// "1048576", "64MiB", "64 MiB".
bool parse_bytes(std::string_view text, uint64_t& value) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (!parse_whole(text.substr(0, digits), value)) return false;
  std::string_view unit = text.substr(digits);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  int shift = 0;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  if (unit == "TiB") shift = 40;
  if (shift == 0 && !unit.empty()) return false;
  if (value > (UINT64_MAX >> shift)) return false;
  value <<= shift;
  return true;
}

class Parser {
 public:
  explicit Parser(ParseReport& report) : report_(report) {}

  void value(const Field& field, const Node& node, const std::string& path, void* target) {
    path_ = node.origin.empty() ? path : node.origin;
    if (node.kind == Node::Kind::null) {
      return error(node, fmt::format("has no value; {} is expected", allowed_text(field)));
    }
    switch (field.kind) {
      case FieldKind::boolean: return boolean(field, node, *static_cast<bool*>(target));
      case FieldKind::integer: return integer(field, node, *static_cast<int64_t*>(target));
      case FieldKind::optional_integer: {
        int64_t parsed = 0;
        const size_t before = report_.errors.size();
        integer(field, node, parsed);
        if (report_.errors.size() == before) *static_cast<std::optional<int64_t>*>(target) = parsed;
        return;
      }
      case FieldKind::bytes: return bytes(field, node, *static_cast<uint64_t*>(target));
      case FieldKind::number: return number(field, node, *static_cast<double*>(target));
      case FieldKind::text:
      case FieldKind::choice: return text(field, node, *static_cast<std::string*>(target));
      case FieldKind::text_list: return list(field, node, *static_cast<std::vector<std::string>*>(target));
      case FieldKind::section:
      case FieldKind::section_list: return;  // parse_section() follows those itself
    }
  }

 private:
  void error(const Node& node, std::string_view what) { report_error(report_, node.line, path_, what); }
  void refuse(const Field& field, const Node& node) {
    error(node, fmt::format("{} is not allowed; {} is expected", node.described(), allowed_text(field)));
  }

  void boolean(const Field& field, const Node& node, bool& target) {
    if (node.kind == Node::Kind::scalar && !node.quoted && (node.text == "true" || node.text == "false")) {
      target = node.text == "true";
      return;
    }
    refuse(field, node);
  }

  void integer(const Field& field, const Node& node, int64_t& target) {
    int64_t parsed = 0;
    if (node.kind != Node::Kind::scalar || node.quoted || !parse_whole(node.text, parsed)) return refuse(field, node);
    const auto as_double = static_cast<double>(parsed);
    if (as_double < field.min || as_double > field.max) return refuse(field, node);
    target = parsed;
  }

  void bytes(const Field& field, const Node& node, uint64_t& target) {
    uint64_t parsed = 0;
    if (node.kind != Node::Kind::scalar || !parse_bytes(node.text, parsed)) return refuse(field, node);
    const auto as_double = static_cast<double>(parsed);
    if (as_double < field.min || as_double > field.max) return refuse(field, node);
    target = parsed;
  }

  void number(const Field& field, const Node& node, double& target) {
    double parsed = 0;
    if (node.kind != Node::Kind::scalar || node.quoted || !parse_whole(node.text, parsed) || !std::isfinite(parsed) ||
        parsed < field.min || parsed > field.max) {
      return refuse(field, node);
    }
    target = parsed;
  }

  void text(const Field& field, const Node& node, std::string& target) {
    if (node.kind != Node::Kind::scalar) return refuse(field, node);
    if ((field.non_empty || field.required) && node.text.empty()) return refuse(field, node);
    if (field.kind == FieldKind::choice &&
        std::find(field.choices.begin(), field.choices.end(), node.text) == field.choices.end()) {
      const std::string near = nearest_word(node.text, field.choices);
      return error(node, fmt::format("\"{}\" is not allowed; {} is expected{}", node.text, allowed_text(field),
                                     near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
    }
    if (field.tree_paths && !node.text.starts_with('/')) return refuse(field, node);
    target = field.host_path ? resolve_host_path(node.text, report_.file) : node.text;
  }

  void list(const Field& field, const Node& node, std::vector<std::string>& target) {
    if (node.kind != Node::Kind::sequence) return refuse(field, node);
    std::vector<std::string> parsed;
    for (const Node& item : node.items) {
      if (item.kind != Node::Kind::scalar || item.text.empty() || (field.tree_paths && !item.text.starts_with('/'))) {
        error(item.line == 0 ? node : item,
              fmt::format("{} is not allowed in it; {} is expected", item.described(), allowed_text(field)));
        return;
      }
      parsed.push_back(field.host_path ? resolve_host_path(item.text, report_.file) : item.text);
    }
    target = std::move(parsed);
  }

  ParseReport& report_;
  std::string path_;
};

std::string child_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

const Field* find_field(const Section& section, std::string_view name) {
  for (const Field& field : section.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

void unknown_key(const Section& section, const NodeEntry& entry, const std::string& path, ParseReport& report) {
  const std::string where = entry.value.origin.empty() ? path : entry.value.origin;
  for (const auto& [name, reason] : section.refused) {
    if (name == entry.key) return report_error(report, entry.line, where, reason);
  }
  std::vector<std::string> names;
  names.reserve(section.fields.size());
  for (const Field& field : section.fields) names.push_back(field.name);
  const std::string near = nearest_word(entry.key, names);
  std::string what = "unknown key";
  if (!near.empty()) what += fmt::format("; did you mean \"{}\"?", near);
  what += fmt::format("; known here: {}", fmt::join(names, ", "));
  report_error(report, entry.line, where, what);
}

void parse_list_of_sections(const Field& field, const Node& node, const std::string& path, void* target,
                            ParseReport& report) {
  if (node.kind != Node::Kind::sequence) {
    return report_error(report, node.line, path,
                        fmt::format("{} is not allowed; a list of sections is expected", node.described()));
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", path, i);
    report.places[where] = {node.items[i].line, where};
    parse_section(*field.section, node.items[i], where, field.append(target), report);
  }
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, std::min<size_t>(3, word.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const size_t d = distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string allowed_text(const Field& field) {
  const std::string unit = field.unit.empty() ? "" : fmt::format(" ({})", field.unit);
  switch (field.kind) {
    case FieldKind::boolean: return "true or false";
    case FieldKind::integer:
    case FieldKind::optional_integer: return "an integer" + range_text(field) + unit;
    case FieldKind::bytes: return "a size" + range_text(field) + " bytes, such as 1048576 or 64MiB";
    case FieldKind::number: return "a number" + range_text(field) + unit;
    case FieldKind::choice: return fmt::format("one of {}", fmt::join(field.choices, ", "));
    case FieldKind::text:
      if (field.tree_paths) return "an absolute path of the tree, such as /local";
      return field.non_empty || field.required ? "a text that is not empty" : "a text";
    case FieldKind::text_list:
      return field.tree_paths ? "a list of absolute paths, such as [/local/tmp]" : "a list of texts";
    case FieldKind::section: return "a section";
    case FieldKind::section_list: return "a list of sections";
  }
  return "";
}

std::string resolve_host_path(const std::string& path, const std::string& file) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return path;
  fs::path resolved = path;
  if (path == "~" || path.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    if (home != nullptr) resolved = fs::path(home) / (path.size() > 2 ? path.substr(2) : "");
  }
  std::error_code error;
  if (resolved.is_relative()) resolved = fs::absolute(fs::path(file).parent_path() / resolved, error);
  if (error) return path;
  std::string text = resolved.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

void parse_section(const Section& section, const Node& node, const std::string& path, void* target,
                   ParseReport& report) {
  const std::string shown = path.empty() ? "(top)" : path;
  if (node.kind == Node::Kind::null && !path.ends_with(']')) return;  // "log:" with nothing below it: all defaults
  if (node.kind != Node::Kind::map) {
    return report_error(report, node.line == 0 ? 1 : node.line, shown,
                        fmt::format("{} is not allowed; a section of keys is expected", node.described()));
  }
  for (const NodeEntry& entry : node.entries) {
    const std::string where = child_path(path, entry.key);
    const Field* field = find_field(section, entry.key);
    report.places[where] = {entry.line, entry.value.origin.empty() ? where : entry.value.origin};
    if (field == nullptr) {
      unknown_key(section, entry, where, report);
    } else if (field->kind == FieldKind::section) {
      parse_section(*field->section, entry.value, where, field->at(target), report);
    } else if (field->kind == FieldKind::section_list) {
      parse_list_of_sections(*field, entry.value, where, target, report);
    } else {
      Parser(report).value(*field, entry.value, where, field->at(target));
    }
  }
  for (const Field& field : section.fields) {
    if (field.required && node.find(field.name) == nullptr) {
      report_error(report, node.line, child_path(path, field.name),
                   fmt::format("is missing; {} is expected", allowed_text(field)));
    }
  }
}

}  // namespace ragfs
