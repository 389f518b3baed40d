#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "ragfs/config/config.h"
#include "ragfs/config/field_text.h"
#include "ragfs/config/fields.h"

namespace ragfs {

Result<void> check_reload(const Config& running, const Config& next) {
  std::map<std::string, std::string> before;
  visit_fields(config_section(), &running, "", [&](const std::string& path, const Field& field, const void* owner) {
    before[path] = field_value_text(field, owner);
  });
  std::vector<std::string> refused;
  visit_fields(config_section(), &next, "", [&](const std::string& path, const Field& field, const void* owner) {
    const std::string now = field_value_text(field, owner);
    const auto was = before.find(path);
    const std::string old = was == before.end() ? "absent" : was->second;
    if (was != before.end()) before.erase(was);
    if (old != now && !field.live) {
      refused.push_back(fmt::format("{}: {} -> {} cannot change in a running process; restart", next.place(path),
                                    old.empty() ? "absent" : old, now.empty() ? "absent" : now));
    }
  });
  for (const auto& [path, old] : before) {
    refused.push_back(fmt::format("{}: {} -> absent cannot change in a running process; restart", path, old));
  }
  if (refused.empty()) return {};
  return fail(ErrorCode::config, fmt::format("{}", fmt::join(refused, "\n")));
}

}  // namespace ragfs
