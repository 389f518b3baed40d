// IgnoreRules: the rules of one .gitignore or .ignore file.
//
// For: grep on a local tree, which leaves out what the user's ignore files name. Rules of files above the query root do
// not count. Not for: security; an ignored file is only not searched.
// Thread-safety: immutable after parse.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ragfs/fs/glob_pattern.h"

namespace ragfs {

class IgnoreRules {
 public:
  static constexpr size_t kMaxRules = 10'000;

  IgnoreRules() = default;
  // Lines that are no valid pattern are left out, as git does; so is what comes after kMaxRules rules.
  static IgnoreRules parse(std::string_view text);

  enum class Verdict : uint8_t { none, ignore, keep };
  // The last rule that matches decides. `rel_path` is relative to the directory that holds the file.
  Verdict judge(std::string_view rel_path, bool is_dir) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    GlobPattern pattern;
    bool keep = false;       // "!pattern"
    bool only_dirs = false;  // "pattern/"
  };
  std::vector<Rule> rules_;
};

}  // namespace ragfs
