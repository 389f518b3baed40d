#include "ragfs/config/field_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ragfs/config/fields.h"
#include "ragfs/config/section_parser.h"

namespace ragfs {
namespace {

// Double quotes unless the text is a plain word that YAML cannot mistake for something else.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void yaml_section(const Section& section, const void* owner, int indent, bool dash, std::string& out) {
  for (const Field& field : section.fields) {
    std::string lead(static_cast<size_t>(indent), ' ');
    if (dash) lead.replace(lead.size() - 2, 2, "- ");
    dash = false;
    if (field.kind == FieldKind::section) {
      out += fmt::format("{}{}:\n", lead, field.name);
      yaml_section(*field.section, field.at(const_cast<void*>(owner)), indent + 2, false, out);
    } else if (field.kind == FieldKind::section_list) {
      out += fmt::format("{}{}:{}\n", lead, field.name, field.count(owner) == 0 ? " []" : "");
      for (size_t i = 0; i < field.count(owner); ++i) {
        yaml_section(*field.section, field.element(owner, i), indent + 4, true, out);
      }
    } else {
      const std::string value = field_value_text(field, owner);
      if (!value.empty()) out += fmt::format("{}{}: {}\n", lead, field.name, value);
    }
  }
}

void markdown_section(const Section& section, const void* owner, const std::string& path, std::string& out) {
  out += fmt::format("\n### {}\n\n{}\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n",
                     path.empty() ? "top" : "`" + path + "`", section.meaning);
  for (const Field& field : section.fields) {
    if (field.kind == FieldKind::section || field.kind == FieldKind::section_list) {
      out += fmt::format("| `{}` | | {} | {} |\n", field.name, allowed_text(field), field.meaning);
      continue;
    }
    const std::string value = field.required ? "must be given" : "`" + field_value_text(field, owner) + "`";
    out += fmt::format("| `{}` | {} | {} | {}{} |\n", field.name, value == "``" ? "" : value, allowed_text(field),
                       field.meaning, field.live ? " May change at a reload." : "");
  }
  const MountConfig mount;
  for (const Field& field : section.fields) {
    const std::string below = path.empty() ? field.name : path + "." + field.name;
    if (field.kind == FieldKind::section) {
      markdown_section(*field.section, field.at(const_cast<void*>(owner)), below, out);
    } else if (field.kind == FieldKind::section_list) {
      markdown_section(*field.section, &mount, below + "[]", out);
    }
  }
}

}  // namespace

std::string field_value_text(const Field& field, const void* owner) {
  if (!field.at) return "";
  const void* at = field.at(const_cast<void*>(owner));  // `at` only computes an address
  switch (field.kind) {
    case FieldKind::boolean: return *static_cast<const bool*>(at) ? "true" : "false";
    case FieldKind::integer: return fmt::format("{}", *static_cast<const int64_t*>(at));
    case FieldKind::optional_integer: {
      const auto& value = *static_cast<const std::optional<int64_t>*>(at);
      return value ? fmt::format("{}", *value) : "";
    }
    case FieldKind::bytes: return fmt::format("{}", *static_cast<const uint64_t*>(at));
    case FieldKind::number: return fmt::format("{}", *static_cast<const double*>(at));
    case FieldKind::choice: return *static_cast<const std::string*>(at);
    case FieldKind::text: return quoted(*static_cast<const std::string*>(at));
    case FieldKind::text_list: {
      std::vector<std::string> items;
      for (const std::string& item : *static_cast<const std::vector<std::string>*>(at)) items.push_back(quoted(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case FieldKind::section:
    case FieldKind::section_list: return "";
  }
  return "";
}

void visit_fields(const Section& section, const void* owner, const std::string& path, const FieldVisitor& visit) {
  for (const Field& field : section.fields) {
    const std::string where = path.empty() ? field.name : path + "." + field.name;
    if (field.kind == FieldKind::section) {
      visit_fields(*field.section, field.at(const_cast<void*>(owner)), where, visit);
    } else if (field.kind == FieldKind::section_list) {
      for (size_t i = 0; i < field.count(owner); ++i) {
        visit_fields(*field.section, field.element(owner, i), fmt::format("{}[{}]", where, i), visit);
      }
    } else {
      visit(where, field, owner);
    }
  }
}

std::string config_as_yaml(const Config& config) {
  std::string out;
  yaml_section(config_section(), &config, 0, false, out);
  return out;
}

std::string config_as_markdown() {
  const Config defaults;
  std::string out;
  markdown_section(config_section(), &defaults, "", out);
  return out;
}

}  // namespace ragfs
