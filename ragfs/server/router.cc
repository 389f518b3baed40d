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

void Router::add(Route route) {
  const bool literal = route.path.find('{') == std::string::npos;
  (literal ? literal_[route.path] : patterns_).push_back(routes_.size());
  routes_.push_back(std::move(route));
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (method == "HEAD") method = "GET";
  Match match;
  std::vector<std::string> captures;
  const auto written_out = literal_.find(path);
  const bool literal = written_out != literal_.end();
  for (const size_t index : literal ? written_out->second : patterns_) {
    const Route& route = routes_[index];
    if (!literal && !fits(route.path, path, captures)) continue;
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
