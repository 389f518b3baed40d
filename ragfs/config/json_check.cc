#include "ragfs/config/json_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ragfs {

Result<void> check_json(std::string_view text, std::string_view file) {
  try {
    // A callback that drops everything: only the grammar is of interest.
    const auto dropped =
        nlohmann::json::parse(text, [](int, nlohmann::json::parse_event_t, nlohmann::json&) { return false; });
    return {};
  } catch (const nlohmann::json::parse_error& e) {
    const size_t at = std::min(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    std::string_view what = e.what();
    if (const size_t colon = what.find("column"); colon != std::string_view::npos) {
      what = what.substr(std::min(what.size(), what.find(": ", colon) + 2));
    }
    return fail(ErrorCode::config, fmt::format("{}:{}:{}: not valid JSON: {}", file, line, at - line_start + 1, what));
  } catch (const nlohmann::json::exception& e) {
    return fail(ErrorCode::config, fmt::format("{}:1:1: not valid JSON: {}", file, e.what()));
  }
}

}  // namespace ragfs
