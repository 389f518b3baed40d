// Arguments of a call: parameters of the query and fields of a JSON body, checked where they enter.
//
// Every error names the argument and what is allowed. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ragfs/base/path.h"
#include "ragfs/server/reply.h"
#include "ragfs/server/router.h"

namespace ragfs::server {

// A path that the caller gave, within the caller's root. Errors: invalid_path; permission_denied.
Result<Path> checked_path(const Call& call, std::string_view text);
// The parameter "path" (or another). Errors: invalid_argument when it is missing; those of checked_path().
Result<Path> path_parameter(const Call& call, std::string_view name = "path");
// Errors: invalid_argument.
Result<std::optional<int64_t>> integer_parameter(const Call& call, std::string_view name, int64_t min, int64_t max);
Result<bool> flag_parameter(const Call& call, std::string_view name);
// Octal permission bits, such as "755". Errors: invalid_argument.
Result<uint32_t> mode_parameter(const Call& call, uint32_t otherwise);

// A JSON object as body.
class BodyFields {
 public:
  static constexpr size_t kMaxBytes = 1 << 20;  // parsed JSON takes many times the memory of its text
  // Errors: invalid_argument; too_large.
  static Result<BodyFields> parse(const Call& call);
  BodyFields(BodyFields&&) noexcept;
  ~BodyFields();
  const Json& json() const { return *json_; }
  // Errors: invalid_argument when it is missing or not a text.
  Result<std::string> text(const std::string& name) const;
  // The field "path", within the caller's root. Errors: those of text() and checked_path().
  Result<Path> path(const Call& call) const;
  Result<std::string> text_or(const std::string& name, std::string otherwise) const;
  Result<bool> flag(const std::string& name) const;  // false when absent
  Result<std::optional<int64_t>> integer(const std::string& name, int64_t min, int64_t max) const;

 private:
  explicit BodyFields(Json json);
  std::unique_ptr<Json> json_;
};

}  // namespace ragfs::server
