// Router: which handler answers which method and path, and what a caller needs to be allowed for it.
//
// The table of routes is the one place that knows them all: the OpenAPI document is tested against it. Not for: HTTP
// itself. Thread-safety: immutable after the routes were added.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/server/caller.h"
#include "ragfs/server/http_message.h"
#include "ragfs/server/target.h"

namespace ragfs::server {

enum class Access : uint8_t {
  open,     // no token needed
  read,     // any token
  write,    // not with a read-only token
  control,  // an operator's token that is not read-only
  inspect,  // an operator's token
};

// Where a handler runs: on a worker, or at once on the connection's thread because it never waits.
enum class Place : uint8_t { worker, connection };

struct Call {
  HttpRequest& request;
  const Target& target;
  const Caller& caller;
  Context context;
  std::vector<std::string> captures;  // what stood for {...} in the route's path, in order
};

using Handler = std::function<HttpResponse(Call&)>;
// Runs on the connection's thread and never waits; nothing = the handler has to do it.
using QuickHandler = std::function<std::optional<HttpResponse>(Call&)>;

struct Route {
  std::string method;
  std::string path;  // "/api/v1/handles/{id}/read"
  Access access = Access::read;
  Place place = Place::worker;
  Handler handler;
  QuickHandler quick;  // asked before `handler`; none where every answer may have to wait
};

class Router {
 public:
  void add(Route route);
  const std::vector<Route>& routes() const { return routes_; }

  struct Match {
    const Route* route = nullptr;  // nullptr: `allowed` says which methods the path has; empty = no such path
    std::vector<std::string> captures;
    std::vector<std::string> allowed;
  };
  // HEAD matches GET. A path that is written out goes before one with {...}: /handles/open is no handle. One '/' at the
  // end of a path makes no difference.
  Match match(std::string_view method, std::string_view path) const;

 private:
  std::vector<Route> routes_;
  std::map<std::string, std::vector<size_t>, std::less<>> literal_;  // by path: routes without {...}
  std::vector<size_t> patterns_;                                     // routes with
};

}  // namespace ragfs::server
