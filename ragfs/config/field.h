// Field and Section: the table that describes every key of the configuration.
//
// One table (fields.cc) serves the parser, the JSON Schema, `ragfs config show` and docs/config.md, so that they cannot
// disagree. A Field knows its name, kind, limits, meaning and where its value lives inside a config struct.
// Not for: rules between two fields (those are Config::validate()). Thread-safety: immutable after it is built.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ragfs {

enum class FieldKind : uint8_t {
  boolean,           // bool
  integer,           // int64_t
  optional_integer,  // std::optional<int64_t>: absent means something of its own
  bytes,             // uint64_t; "64MiB" is accepted as well
  number,            // double
  text,              // std::string
  choice,            // std::string, one of `choices`
  text_list,         // std::vector<std::string>
  section,           // a struct with a Section of its own
  section_list,      // std::vector of such structs
};

struct Section;

struct Field {
  std::string name;
  FieldKind kind = FieldKind::text;
  std::string meaning;  // one sentence for the operator
  std::string unit;     // "ms", "s", "bytes", "" = none
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  std::vector<std::string> choices;
  const Section* section = nullptr;
  bool required = false;
  bool non_empty = false;   // text must not be ""
  bool live = false;        // may change at a reload
  bool host_path = false;   // a path of this machine: "~/" is expanded, relative to the configuration file's directory
  bool tree_paths = false;  // absolute paths of the tree: must begin with '/'

  std::function<void*(void*)> at;      // the value inside the struct
  std::function<void*(void*)> append;  // section_list: a new element, default-constructed
  std::function<size_t(const void*)> count;
  std::function<const void*(const void*, size_t)> element;

  // Builders, so that fields.cc reads like a table.
  Field&& says(std::string text) && { return meaning = std::move(text), std::move(*this); }
  Field&& in(std::string text) && { return unit = std::move(text), std::move(*this); }
  Field&& between(double low, double high) && { return min = low, max = high, std::move(*this); }
  Field&& at_least(double low) && { return min = low, std::move(*this); }
  Field&& one_of(std::vector<std::string> allowed) && {
    return kind = FieldKind::choice, choices = std::move(allowed), std::move(*this);
  }
  Field&& must_be_given() && { return required = true, std::move(*this); }
  Field&& not_empty() && { return non_empty = true, std::move(*this); }
  Field&& changes_live() && { return live = true, std::move(*this); }
  Field&& is_host_path() && { return host_path = true, std::move(*this); }
  Field&& are_tree_paths() && { return tree_paths = true, std::move(*this); }
};

struct Section {
  std::string meaning;
  std::vector<Field> fields;
  // Keys that are refused with a sentence of their own: {"password", "..."}.
  std::vector<std::pair<std::string, std::string>> refused;
};

// The kind follows from the member's type.
template <typename Struct, typename Value>
Field field(std::string name, Value Struct::* member) {
  Field f;
  f.name = std::move(name);
  if constexpr (std::is_same_v<Value, bool>) f.kind = FieldKind::boolean;
  if constexpr (std::is_same_v<Value, int64_t>) f.kind = FieldKind::integer;
  if constexpr (std::is_same_v<Value, std::optional<int64_t>>) f.kind = FieldKind::optional_integer;
  if constexpr (std::is_same_v<Value, uint64_t>) f.kind = FieldKind::bytes;
  if constexpr (std::is_same_v<Value, double>) f.kind = FieldKind::number;
  if constexpr (std::is_same_v<Value, std::vector<std::string>>) f.kind = FieldKind::text_list;
  f.at = [member](void* owner) -> void* { return &(static_cast<Struct*>(owner)->*member); };
  return f;
}

// A struct inside a struct.
template <typename Struct, typename Value>
Field section(std::string name, Value Struct::* member, const Section& spec) {
  Field f = field(std::move(name), member);
  f.kind = FieldKind::section;
  f.section = &spec;
  f.meaning = spec.meaning;
  return f;
}

// A level of the file without a struct of its own.
inline Field group(std::string name, const Section& spec) {
  Field f;
  f.name = std::move(name);
  f.kind = FieldKind::section;
  f.section = &spec;
  f.meaning = spec.meaning;
  f.at = [](void* owner) { return owner; };
  return f;
}

template <typename Struct, typename Value>
Field section_list(std::string name, std::vector<Value> Struct::* member, const Section& spec) {
  Field f;
  f.name = std::move(name);
  f.kind = FieldKind::section_list;
  f.section = &spec;
  f.meaning = spec.meaning;
  f.append = [member](void* owner) -> void* { return &(static_cast<Struct*>(owner)->*member).emplace_back(); };
  f.count = [member](const void* owner) { return (static_cast<const Struct*>(owner)->*member).size(); };
  f.element = [member](const void* owner, size_t i) -> const void* {
    return &(static_cast<const Struct*>(owner)->*member)[i];
  };
  return f;
}

}  // namespace ragfs
