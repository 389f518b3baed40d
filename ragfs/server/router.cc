#include "ragfs/server/router.h"

#include <algorithm>

namespace ragfs::server {
namespace {

// True when `path` has the shape of `pattern`; what stands for {...} goes to `captures`.
bool fits(std::string_view pattern, std::string_view path, std::vector<std::string>& captures) {
  captures.clear();
  while (!pattern.empty() && !path.empty()) {
    if (pattern.front() == '{') {
      const std::string_view part = path.substr(0, path.find('/'));
      if (part.empty()) return false;
      captures.emplace_back(part);
      path.remove_prefix(part.size());
      pattern.remove_prefix(pattern.find('}') + 1);
    } else if (pattern.front() == path.front()) {
      path.remove_prefix(1);
      pattern.remove_prefix(1);
    } else {
      return false;
    }
  }
  return pattern.empty() && path.empty();
}

}  // namespace

Router::Match Router::match(std::string_view method, std::string_view path) const {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (method == "HEAD") method = "GET";
  Match match;
  const bool literal = std::ranges::any_of(routes_, [&](const Route& route) { return route.path == path; });
  std::vector<std::string> captures;
  for (const Route& route : routes_) {
    if (!fits(route.path, path, captures) || (literal && !captures.empty())) continue;
    if (route.method == method) {
      match.route = &route;
      match.captures = std::move(captures);
      match.allowed.clear();
      return match;
    }
    if (std::ranges::find(match.allowed, route.method) == match.allowed.end()) match.allowed.push_back(route.method);
  }
  return match;
}

}  // namespace ragfs::server
