// RequestParser: bytes of a connection become an HttpRequest.
//
// Strict where leniency lets two programs read one message differently (request smuggling): a request with both
// lengths, a transfer coding other than "chunked", a repeated Host or Content-Length, a folded header line or a bare
// control byte is refused. The parsing itself is Boost.Beast's, which only request_parser.cc sees. Not for: more than
// one request; make a new one for each. Thread-safety: not synchronised.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "ragfs/server/http_message.h"

namespace ragfs::server {

struct RequestLimits {
  uint32_t header_bytes = 16 << 10;
  uint32_t header_count = 100;
  uint64_t body_bytes = 64ULL << 20;
};

// Why a request was refused: what the client is told before the connection ends.
struct Refusal {
  unsigned status = 400;
  std::string message;
};

class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) = delete;

  // Consumes what it can of `bytes`; returns how much. It is given the rest again, with more behind it.
  size_t feed(std::string_view bytes);
  bool started() const;      // a byte of the request was consumed or seen
  bool header_done() const;  // request() has everything but the body
  bool done() const;
  // A request that must not be answered any other way; the connection ends after it.
  const Refusal* refused() const;
  HttpRequest& request();

 private:
  class Beast;
  std::unique_ptr<Beast> beast_;
};

}  // namespace ragfs::server
