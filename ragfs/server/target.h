// Target: the path and the query of a request target.
//
// Percent-encoding is undone once, in one place; "+" in a query is a space, as forms and the SDK send it. A target that
// could be read in two ways (a bad escape, a parameter given twice, an absolute URL) is refused. Not for: paths of the
// tree, which Path::parse checks. Thread-safety: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::server {

class Target {
 public:
  static constexpr size_t kMaxParameters = 32;

  // Errors: invalid_argument.
  static Result<Target> parse(std::string_view text);

  const std::string& path() const { return path_; }
  // nullptr when it was not given.
  const std::string* parameter(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

 private:
  std::string path_;
  std::vector<std::pair<std::string, std::string>> parameters_;
};

// Errors: invalid_argument for a '%' that two hexadecimal digits do not follow.
Result<std::string> percent_decode(std::string_view text, bool plus_is_space);

}  // namespace ragfs::server
