#include "ragfs/config/schema.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ragfs/config/config.h"
#include "ragfs/config/field_text.h"
#include "ragfs/config/fields.h"

namespace ragfs {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

void add_range(Json& out, const Field& field) {
  if (field.min > std::numeric_limits<double>::lowest()) out["minimum"] = number_json(field.min);
  if (field.max < std::numeric_limits<double>::max()) out["maximum"] = number_json(field.max);
}

Json section_json(const Section& section, const void* owner);

Json value_json(const Field& field) {
  Json out;
  switch (field.kind) {
    case FieldKind::boolean: out["type"] = "boolean"; break;
    case FieldKind::integer:
    case FieldKind::optional_integer:
      out["type"] = "integer";
      add_range(out, field);
      break;
    case FieldKind::bytes: {
      Json whole = {{"type", "integer"}};
      add_range(whole, field);
      out["anyOf"] = {whole, {{"type", "string"}, {"pattern", "^[0-9]+( ?[KMGT]iB)?$"}}};
      break;
    }
    case FieldKind::number:
      out["type"] = "number";
      add_range(out, field);
      break;
    case FieldKind::choice: out["enum"] = field.choices; break;
    case FieldKind::text:
      out["type"] = "string";
      if (field.tree_paths) out["pattern"] = "^/";
      if (!field.tree_paths && (field.non_empty || field.required)) out["minLength"] = 1;
      break;
    case FieldKind::text_list:
      out["type"] = "array";
      out["items"] = {{"type", "string"}, {"minLength", 1}};
      if (field.tree_paths) out["items"]["pattern"] = "^/";
      break;
    case FieldKind::section:
    case FieldKind::section_list: break;
  }
  return out;
}

Json default_json(const Field& field, const void* owner) {
  const void* at = field.at(const_cast<void*>(owner));  // `at` only computes an address
  switch (field.kind) {
    case FieldKind::boolean: return *static_cast<const bool*>(at);
    case FieldKind::integer: return *static_cast<const int64_t*>(at);
    case FieldKind::bytes: return *static_cast<const uint64_t*>(at);
    case FieldKind::number: return number_json(*static_cast<const double*>(at));
    case FieldKind::text:
    case FieldKind::choice: return *static_cast<const std::string*>(at);
    case FieldKind::text_list: return *static_cast<const std::vector<std::string>*>(at);
    default: return nullptr;
  }
}

Json field_json(const Field& field, const void* owner) {
  if (field.kind == FieldKind::section) return section_json(*field.section, field.at(const_cast<void*>(owner)));
  if (field.kind == FieldKind::section_list) {
    const MountConfig mount;  // the only list of sections
    return {{"type", "array"}, {"description", field.meaning}, {"items", section_json(*field.section, &mount)}};
  }
  Json out = value_json(field);
  out["description"] = field.unit.empty() ? field.meaning : field.meaning + " Unit: " + field.unit + ".";
  if (!field.required && field.kind != FieldKind::optional_integer) out["default"] = default_json(field, owner);
  return out;
}

Json section_json(const Section& section, const void* owner) {
  Json out;
  out["type"] = "object";
  out["description"] = section.meaning;
  out["additionalProperties"] = false;
  Json required = Json::array();
  for (const Field& field : section.fields) {
    out["properties"][field.name] = field_json(field, owner);
    if (field.required) required.push_back(field.name);
  }
  if (!required.empty()) out["required"] = required;
  return out;
}

Json as_json(const Section& section, const void* owner) {
  Json out = Json::object();
  for (const Field& field : section.fields) {
    if (field.kind == FieldKind::section) {
      out[field.name] = as_json(*field.section, field.at(const_cast<void*>(owner)));
    } else if (field.kind == FieldKind::section_list) {
      out[field.name] = Json::array();
      for (size_t i = 0; i < field.count(owner); ++i) {
        out[field.name].push_back(as_json(*field.section, field.element(owner, i)));
      }
    } else if (field.kind == FieldKind::optional_integer) {
      const auto& value = *static_cast<const std::optional<int64_t>*>(field.at(const_cast<void*>(owner)));
      if (value) out[field.name] = *value;
    } else {
      out[field.name] = default_json(field, owner);
    }
  }
  return out;
}

}  // namespace

std::string config_schema_json() {
  const Config defaults;
  Json out;
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = "RAGFS configuration";
  const Json top = section_json(config_section(), &defaults);
  for (const auto& [key, value] : top.items()) out[key] = value;
  return out.dump(2) + "\n";
}

std::string config_as_json(const Config& config) {
  return as_json(config_section(), &config).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ragfs
