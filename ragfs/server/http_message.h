// HttpRequest and HttpResponse: one exchange as the API sees it.
//
// For: everything between the connection, which speaks HTTP, and the API, which speaks of files. Not for: wire formats.
// Thread-safety: values; one exchange is handled by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/error.h"

namespace ragfs::server {

struct HttpRequest {
  std::string method;
  std::string target;                                        // as it came, percent-encoded
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool http11 = true;  // false: HTTP/1.0
  bool keep_alive = true;
  bool has_length = false;  // a Content-Length was given
  uint64_t content_length = 0;
  bool expects_continue = false;

  // The value of the only header of that name; nullptr when there is none.
  const std::string* header(std::string_view lower_name) const {
    for (const auto& [name, value] : headers) {
      if (name == lower_name) return &value;
    }
    return nullptr;
  }
};

// A body that is made while it is sent. next() runs on a worker and may take long; the connection asks for the next
// part only after the one before was handed to the client, so at most one part is in memory.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // Empty = the end. An error ends the connection: the client sees a body that is cut off, never a wrong one.
  virtual Result<Bytes> next() = 0;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  Bytes body;
  std::unique_ptr<BodySource> source;   // instead of body
  std::optional<uint64_t> source_size;  // bytes of source; absent = sent in chunks
  bool close = false;                   // end the connection after this answer
};

std::string_view reason_phrase(unsigned status);

}  // namespace ragfs::server
