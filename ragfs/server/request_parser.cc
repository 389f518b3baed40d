#include "ragfs/server/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

namespace ragfs::server {
namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

std::string lower(string_view text) {
  std::string out(text.data(), text.size());
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

Refusal refusal_of(const error_code& ec) {
  if (ec == http::error::header_limit) return {431, "the header of the request is too large"};
  if (ec == http::error::body_limit) return {413, "the body of the request is too large"};
  return {400, "malformed request: " + ec.message()};
}

}  // namespace

class RequestParser::Beast final : public http::basic_parser<true> {
 public:
  explicit Beast(const RequestLimits& limits) : limits_(limits) {
    header_limit(limits.header_bytes);
    body_limit(limits.body_bytes);
    eager(true);
  }

  HttpRequest request;
  std::optional<Refusal> refusal;
  bool seen = false;

 private:
  void refuse(error_code& ec, unsigned status, std::string message) {
    if (!refusal) refusal = Refusal{status, std::move(message)};
    ec = http::error::bad_value;
  }

  void on_request_impl(http::verb, string_view method, string_view target, int version, error_code& ec) override {
    request.method.assign(method.data(), method.size());
    request.target.assign(target.data(), target.size());
    request.headers.reserve(8);
    if (version < 10 || version > 11) refuse(ec, 400, "HTTP/1.0 and HTTP/1.1 are spoken here");
    version_ = version;
    request.http11 = version == 11;
  }

  void on_response_impl(int, string_view, int, error_code&) override {}

  void on_field_impl(http::field, string_view name, string_view value, error_code& ec) override {
    if (request.headers.size() >= limits_.header_count) return refuse(ec, 431, "too many header lines");
    for (const char c : value) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') return refuse(ec, 400, "a control byte in a header line");
    }
    request.headers.emplace_back(lower(name), std::string(value.data(), value.size()));
    const std::string& key = request.headers.back().first;
    if (key == "content-length") lengths_ += 1;
    if (key == "host") hosts_ += 1;
    if (key == "transfer-encoding") {
      codings_ += 1;
      if (lower(value) != "chunked") refuse(ec, 400, "the only transfer coding spoken here is chunked");
    }
    if (key == "expect") {
      if (lower(value) != "100-continue") return refuse(ec, 417, "the only expectation met here is 100-continue");
      request.expects_continue = version_ == 11;
    }
  }

  void on_header_impl(error_code& ec) override {
    if (hosts_ > 1) return refuse(ec, 400, "more than one Host");
    if (hosts_ == 0 && version_ == 11) return refuse(ec, 400, "Host is missing");
    if (lengths_ > 1) return refuse(ec, 400, "more than one Content-Length");
    if (codings_ > 1 || (codings_ == 1 && (lengths_ == 1 || version_ != 11))) {
      return refuse(ec, 400, "the length of the body is said in two ways");
    }
    request.keep_alive = keep_alive();
    if (const auto length = content_length()) {
      request.has_length = true;
      request.content_length = *length;
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}

  size_t on_body_impl(string_view body, error_code&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}

  size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& ec) override { return on_body_impl(body, ec); }

  void on_finish_impl(error_code&) override {}

  const RequestLimits limits_;
  int version_ = 11;
  int lengths_ = 0;
  int hosts_ = 0;
  int codings_ = 0;
};

RequestParser::RequestParser(const RequestLimits& limits) : beast_(std::make_unique<Beast>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;

size_t RequestParser::feed(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && !beast_->is_done() && !beast_->refusal) {
    beast_->seen = true;
    error_code ec;
    const size_t n = beast_->put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), ec);
    used += n;
    if (ec == http::error::need_more) break;
    if (ec) {
      if (!beast_->refusal) beast_->refusal = refusal_of(ec);
      break;
    }
    if (n == 0) break;
  }
  return used;
}

bool RequestParser::started() const { return beast_->seen; }
bool RequestParser::header_done() const { return beast_->is_header_done() && !beast_->refusal; }
bool RequestParser::done() const { return beast_->is_done() && !beast_->refusal; }
const Refusal* RequestParser::refused() const { return beast_->refusal ? &*beast_->refusal : nullptr; }
HttpRequest& RequestParser::request() { return beast_->request; }

}  // namespace ragfs::server
