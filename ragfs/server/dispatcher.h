// Dispatcher: from a request to the handler that answers it: route, token, rights, and the guard of a server that has
// no tokens.
//
// A loopback server without tokens answers whoever is on the machine, and so every page a browser there shows: requests
// that name another host (DNS rebinding) or come from another origin are refused. Not for: what the handlers do.
// Thread-safety: immutable after it is made; all methods may be called from any thread.
#pragma once

#include <optional>
#include <string>

#include "ragfs/server/router.h"
#include "ragfs/server/services.h"

namespace ragfs::server {

// What is known of a request when its header has come.
struct Admission {
  std::optional<HttpResponse> refusal;  // the answer already
  const Route* route = nullptr;
  std::vector<std::string> captures;
  Target target;
  Caller caller;
};

class Dispatcher {
 public:
  Dispatcher(Services& services, TokenSet tokens, bool local_only);

  // Looks at everything but the body.
  Admission admit(const HttpRequest& header) const;
  // Where admission.route says. Never throws; answers 500 for what should not have happened.
  HttpResponse handle(const Admission& admission, HttpRequest& request) const;
  // The answer when it can be given without waiting, on any thread; nothing = handle() it. Never throws.
  std::optional<HttpResponse> handle_at_once(const Admission& admission, HttpRequest& request) const;

  const Router& router() const { return router_; }

 private:
  Call call_of(const Admission& admission, HttpRequest& request) const;
  std::optional<HttpResponse> guard_browser(const HttpRequest& header) const;
  std::optional<HttpResponse> authorize(const HttpRequest& header, Admission& admission) const;

  Services& services_;
  const TokenSet tokens_;
  const bool local_only_;
  Router router_;
};

}  // namespace ragfs::server
