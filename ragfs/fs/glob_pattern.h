// GlobPattern: a glob over paths relative to a query root.
//
// Syntax: `*` and `?` stay within a component, `**` as a whole component crosses them (none or more), `[a-z]`, `[!a]`,
// `{a,b}` (may nest), `\` takes the next character literally. Empty and "." components of the pattern mean nothing.
// Characters are Unicode code points; a byte that is not UTF-8 counts as a character of its own.
// Matching takes time proportional to pattern times path, whatever the pattern: it can come from anybody.
// Not for: .gitignore files (ignore_rules.h, which builds on this).
// Thread-safety: immutable after parse; match() may be called from any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs {

inline constexpr size_t kMaxGlobPatternBytes = 4096;

class GlobPattern {
 public:
  // Errors: invalid_operation `empty glob pattern`, `invalid glob pattern: ...`.
  static Result<GlobPattern> parse(std::string_view pattern);

  struct Answer {
    bool matches = false;
    bool below_may_match = false;  // whether something below this path could match
  };
  // `rel_path` has no leading '/' and no empty or "." component.
  Answer match(std::string_view rel_path) const;

 private:
  friend class GlobCompiler;
  enum class Op : uint8_t {
    character,
    any_in_component,
    any,
    one_of,
    none_of,
    split,
    jump,
    never,
    accept,
  };
  struct Instruction {
    Op op = Op::never;
    char32_t code = 0;     // character
    uint32_t target = 0;   // jump, split: the first way; one_of, none_of: index into classes_
    uint32_t target2 = 0;  // split: the second way
  };
  using CharacterClass = std::vector<std::pair<char32_t, char32_t>>;

  GlobPattern() = default;
  bool takes(const Instruction& instruction, char32_t code) const;

  class States;
  std::vector<Instruction> program_;
  std::vector<CharacterClass> classes_;
};

}  // namespace ragfs
