// Node: a parsed configuration document with the line of every value.
//
// For: the section parser and the ov.conf translation, which both need to say where a wrong value stands. Reads YAML,
// and JSON as the subset of YAML that it is. Not for: anything but configuration (documents are bounded: 1 MiB of text,
// 100,000 values, 64 levels). Thread-safety: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs {

inline constexpr size_t kMaxConfigBytes = 1 << 20;

struct NodeEntry;

struct Node {
  enum class Kind : uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes is a text, whatever it looks like
  int line = 0;         // from 1
  // The field as its writer named it, when the value was moved to another field (ov.conf); "" = where it stands.
  std::string origin;
  std::vector<Node> items;         // of a sequence
  std::vector<NodeEntry> entries;  // of a map, in the order of the file; keys are unique

  // The value of a key of a map; nullptr when absent or when this is no map.
  const Node* find(std::string_view key) const;
  // What the file says, for messages: `"text"`, `12`, "a list", "a section", "nothing".
  std::string described() const;
};

struct NodeEntry {
  std::string key;
  int line = 0;
  Node value;
};

// Errors: config, "FILE:LINE:COLUMN: ..." for text that is not YAML, a key given twice, or a document past the bounds.
Result<Node> parse_document(std::string_view text, std::string_view file);

// `file` named for messages. Errors: config when it cannot be read or is larger than kMaxConfigBytes.
Result<std::string> read_config_text(const std::string& file);

}  // namespace ragfs
