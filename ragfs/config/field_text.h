// field_value_text(): the value of a field as the configuration file would write it.
//
// For: `config show`, docs/config.md, and comparing two configurations field by field. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <string>

#include "ragfs/config/config.h"
#include "ragfs/config/field.h"

namespace ragfs {

// YAML flow style on one line; "" for an absent optional value. `owner` is the struct that holds the field.
std::string field_value_text(const Field& field, const void* owner);

// Calls `visit` for every field that is not a section, in the order of the table, with its full path.
using FieldVisitor = std::function<void(const std::string& path, const Field& field, const void* owner)>;
void visit_fields(const Section& section, const void* owner, const std::string& path, const FieldVisitor& visit);

// The whole configuration as YAML that load_config() reads back.
std::string config_as_yaml(const Config& config);
// The same as JSON.
std::string config_as_json(const Config& config);
// The body of docs/config.md: a table of all keys.
std::string config_as_markdown();

}  // namespace ragfs
