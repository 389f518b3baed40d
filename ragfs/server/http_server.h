// HttpServer: listens, serves the API over an Instance, and drains.
//
// Not for: what is served (the Api's handlers) or for the process around it (signals). Thread-safety: start() and
// stop() by the owner, once each; the rest may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/config/instance.h"

namespace ragfs::server {

class HttpServer {
 public:
  // `instance` must outlive the server. Errors: config (an address that is not this machine's, another than loopback
  // without tokens and TLS, files that cannot be read); already_exists when the address is taken.
  static Result<std::unique_ptr<HttpServer>> start(Instance& instance, const ServerConfig& config, std::string version);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8080".
  std::string url() const;

  // New requests are refused with 503, those in flight end, then everything closes. Returns false when some had to be
  // cut off at the deadline.
  bool stop(Deadline deadline);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ragfs::server
