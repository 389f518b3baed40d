#include "ragfs/server/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

namespace ragfs::server {
namespace {

std::unexpected<Error> wrong(std::string_view name, std::string_view what) {
  return fail(ErrorCode::invalid_argument, fmt::format("{} {}", name, what));
}

}  // namespace

Result<Path> checked_path(const Call& call, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_path, "the path is empty");
  auto path = Path::parse(text);
  if (!path) return path;
  if (!path->view().is_within(call.caller.root)) {
    return fail(ErrorCode::permission_denied,
                fmt::format("{}: this token reaches {} alone", path->text(), call.caller.root.text()));
  }
  return path;
}

Result<Path> path_parameter(const Call& call, std::string_view name) {
  const std::string* text = call.target.parameter(name);
  if (text == nullptr) return wrong(name, "is missing");
  return checked_path(call, *text);
}

Result<std::optional<int64_t>> integer_parameter(const Call& call, std::string_view name, int64_t min, int64_t max) {
  const std::string* text = call.target.parameter(name);
  if (text == nullptr) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < min || value > max) {
    return wrong(name, fmt::format("must be a whole number from {} to {}", min, max));
  }
  return value;
}

Result<bool> flag_parameter(const Call& call, std::string_view name) {
  const std::string* text = call.target.parameter(name);
  if (text == nullptr || *text == "false" || *text == "0") return false;
  if (*text == "true" || *text == "1") return true;
  return wrong(name, "must be true or false");
}

Result<uint32_t> mode_parameter(const Call& call, uint32_t otherwise) {
  const std::string* text = call.target.parameter("mode");
  if (text == nullptr || text->empty()) return otherwise;
  uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), mode, 8);
  if (error != std::errc() || end != text->data() + text->size() || mode > 07777) {
    return wrong("mode", "must be octal permission bits, such as 755");
  }
  return mode;
}

BodyFields::BodyFields(Json json) : json_(std::make_unique<Json>(std::move(json))) {}
BodyFields::BodyFields(BodyFields&&) noexcept = default;
BodyFields::~BodyFields() = default;

Result<BodyFields> BodyFields::parse(const Call& call) {
  if (call.request.body.size() > kMaxBytes) {
    return fail(ErrorCode::too_large, fmt::format("a JSON body has at most {} bytes", kMaxBytes));
  }
  Json json = Json::parse(call.request.body, nullptr, false);
  if (!json.is_object()) return fail(ErrorCode::invalid_argument, "the body must be a JSON object");
  return BodyFields(std::move(json));
}

Result<std::string> BodyFields::text(const std::string& name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return wrong(name, "is missing");
  if (!found->is_string()) return wrong(name, "must be a text");
  return found->get<std::string>();
}

Result<Path> BodyFields::path(const Call& call) const {
  const auto given = text("path");
  if (!given) return std::unexpected(given.error());
  return checked_path(call, *given);
}

Result<std::string> BodyFields::text_or(const std::string& name, std::string otherwise) const {
  return json_->contains(name) ? text(name) : otherwise;
}

Result<bool> BodyFields::flag(const std::string& name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return false;
  if (!found->is_boolean()) return wrong(name, "must be true or false");
  return found->get<bool>();
}

Result<std::optional<int64_t>> BodyFields::integer(const std::string& name, int64_t min, int64_t max) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return std::nullopt;
  const bool whole = found->is_number_integer() && !(found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX);
  if (!whole || found->get<int64_t>() < min || found->get<int64_t>() > max) {
    return wrong(name, fmt::format("must be a whole number from {} to {}", min, max));
  }
  return found->get<int64_t>();
}

}  // namespace ragfs::server
