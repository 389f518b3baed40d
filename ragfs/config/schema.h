// The JSON Schema of the configuration file, made from the table of fields. Thread-safety: pure function.
#pragma once

#include <string>

namespace ragfs {

// JSON Schema 2020-12, indented, with a newline at its end. ragfs/config/schema.json is a copy of it (a test compares).
std::string config_schema_json();

}  // namespace ragfs
