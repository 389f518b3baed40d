#include "ragfs/server/dispatcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <new>

#include "ragfs/server/api.h"
#include "ragfs/server/openapi.h"
#include "ragfs/server/reply.h"

namespace ragfs::server {
namespace {

// "localhost:8080", "http://[::1]:8080": the host is this machine by a name no DNS server can claim.
bool names_this_machine(std::string_view host) {
  const size_t scheme = host.find("://");
  if (scheme != std::string_view::npos) host.remove_prefix(scheme + 3);
  if (host.starts_with('[')) return host.starts_with("[::1]") && (host.size() == 5 || host[5] == ':');
  host = host.substr(0, host.find(':'));
  return host == "localhost" || host == "127.0.0.1";
}

}  // namespace

Dispatcher::Dispatcher(Services& services, TokenSet tokens, bool local_only)
    : services_(services), tokens_(std::move(tokens)), local_only_(local_only) {
  add_file_routes(router_, services);
  add_batch_routes(router_, services);
  add_search_routes(router_, services);
  add_handle_routes(router_, services);
  add_mount_routes(router_, services);
  add_status_routes(router_, services);
  add_openapi_routes(router_, services.version, !tokens_.empty());
}

std::optional<HttpResponse> Dispatcher::guard_browser(const HttpRequest& header) const {
  if (!tokens_.empty() || !local_only_) return std::nullopt;
  const std::string* host = header.header("host");
  if (host != nullptr && !names_this_machine(*host)) {
    return error_reply(421, "permission_denied", "this server answers for localhost alone; it has no tokens");
  }
  const std::string* origin = header.header("origin");
  if (origin != nullptr && !names_this_machine(*origin)) {
    services_.counters.forbidden.fetch_add(1, std::memory_order_relaxed);
    return error_reply(403, "permission_denied", "pages of other origins may not use this server");
  }
  return std::nullopt;
}

std::optional<HttpResponse> Dispatcher::authorize(const HttpRequest& header, Admission& admission) const {
  const Access access = admission.route->access;
  if (!tokens_.empty()) {
    const std::string* value = header.header("authorization");
    constexpr std::string_view kBearer = "Bearer ";
    const Caller* caller = nullptr;
    if (value != nullptr && value->starts_with(kBearer)) caller = tokens_.find(value->substr(kBearer.size()));
    if (caller != nullptr) admission.caller = *caller;
    if (caller == nullptr && access != Access::open) {
      services_.counters.unauthorized.fetch_add(1, std::memory_order_relaxed);
      return error_reply(401, "permission_denied", "a bearer token that this server knows is needed");
    }
  }
  const bool changes = access == Access::write || access == Access::control;
  const bool operators = access == Access::control || access == Access::inspect;
  const Caller& caller = admission.caller;
  if ((changes && caller.read_only) || (operators && !caller.is_operator())) {
    services_.counters.forbidden.fetch_add(1, std::memory_order_relaxed);
    return error_reply(403, "permission_denied",
                       changes && caller.read_only ? "this token may only read" : "this token is not an operator's");
  }
  return std::nullopt;
}

Admission Dispatcher::admit(const HttpRequest& header) const {
  Admission admission;
  if ((admission.refusal = guard_browser(header))) return admission;
  auto target = Target::parse(header.target);
  if (!target) {
    admission.refusal = error_reply(target.error());
    return admission;
  }
  admission.target = std::move(*target);
  Router::Match match = router_.match(header.method, admission.target.path());
  admission.route = match.route;
  admission.captures = std::move(match.captures);
  if (match.route == nullptr) {
    // Without a token not even which paths there are.
    static const Route kUnknown{"", "", Access::read, Place::connection, nullptr};
    admission.route = &kUnknown;
    admission.refusal = authorize(header, admission);
    admission.route = nullptr;
    if (admission.refusal) return admission;
    if (match.allowed.empty()) {
      admission.refusal = error_reply(404, "not_found", "unknown operation: no such path in this API");
      return admission;
    }
    admission.refusal = error_reply(405, "invalid_operation", "the path has other methods than this one");
    admission.refusal->headers.emplace_back("Allow", fmt::format("{}", fmt::join(match.allowed, ", ")));
    return admission;
  }
  admission.refusal = authorize(header, admission);
  const bool always = admission.route->access == Access::open;
  if (!admission.refusal && services_.draining && !always) {
    admission.refusal = error_reply(503, "unavailable", "the server is shutting down; nothing was done");
    admission.refusal->close = true;
  }
  return admission;
}

Call Dispatcher::call_of(const Admission& admission, HttpRequest& request) const {
  Call call{request, admission.target, admission.caller, Context(), admission.captures};
  call.context.account = admission.caller.account;
  call.context.deadline = Deadline::in_ms(services_.config.request_timeout_ms);
  return call;
}

HttpResponse Dispatcher::handle(const Admission& admission, HttpRequest& request) const {
  try {
    Call call = call_of(admission, request);
    return admission.route->handler(call);
  } catch (const std::bad_alloc&) {
    return error_reply({ErrorCode::unavailable, "not enough memory for this request"});
  } catch (const std::exception& e) {
    return error_reply({ErrorCode::internal, e.what()});
  }
}

std::optional<HttpResponse> Dispatcher::handle_at_once(const Admission& admission, HttpRequest& request) const {
  if (!admission.route->quick) return std::nullopt;
  try {
    Call call = call_of(admission, request);
    return admission.route->quick(call);
  } catch (const std::exception&) {
    return std::nullopt;  // handle() will say what is wrong
  }
}

}  // namespace ragfs::server
