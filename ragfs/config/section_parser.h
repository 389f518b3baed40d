// parse_section(): fills a config struct from a Node, by the table of its fields.
//
// Every problem is collected, none hides another: "FILE:LINE: FIELD: what is wrong; what is allowed".
// Thread-safety: pure function.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/config/config.h"
#include "ragfs/config/field.h"
#include "ragfs/config/node.h"

namespace ragfs {

struct ParseReport {
  std::string file;                 // for messages and for relative host paths
  std::vector<std::string> errors;  // bounded: kMaxReported
  std::vector<std::string> warnings;
  std::map<std::string, FieldPlace> places;  // of every field that was given
};

inline constexpr size_t kMaxReported = 50;

// `target` is the struct that `section` describes; `path` is its field path ("" at the top).
void parse_section(const Section& section, const Node& node, const std::string& path, void* target,
                   ParseReport& report);

// The candidate that `word` most likely meant; "" when none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

// What a field accepts: "true or false", "an integer from 1 to 60000 (ms)", "one of bypass, strict".
std::string allowed_text(const Field& field);

// "~/x" and paths relative to the directory of `file` as absolute ones; "" and "-" (a standard stream) stay.
std::string resolve_host_path(const std::string& path, const std::string& file);

}  // namespace ragfs
