#include "ragfs/server/connection.h"

#include <fmt/format.h>

#include <boost/asio/async_result.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "ragfs/base/clock.h"
#include "ragfs/server/reply.h"

namespace ragfs::server {

namespace asio = boost::asio;

namespace {

constexpr size_t kReadBytes = 8 << 10;       // room for a request's header
constexpr size_t kBodyReadBytes = 64 << 10;  // while a body comes in
constexpr size_t kWriteBytes = 256 << 10;    // handed to the system at a time
constexpr int64_t kLinger_ms = 2'000;
constexpr uint64_t kLingerBytes = 64 << 20;
constexpr int64_t kNever = INT64_MAX;

void add(std::atomic<uint64_t>& counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

}  // namespace

Connection::Connection(Loop& loop, Services& services, const Dispatcher& dispatcher, AccessLog& log,
                       asio::ip::tcp::socket socket, asio::ssl::context* tls)
    : loop_(loop),
      services_(services),
      dispatcher_(dispatcher),
      log_(log),
      transport_(std::move(socket), tls),
      in_(kReadBytes, '\0') {}

Connection::~Connection() {
  services_.counters.buffered_bytes.fetch_sub(charged_bytes_);
  services_.connections.remove();
}

void Connection::start(const std::shared_ptr<Connection>& connection) {
  Connection& self = *connection;
  self.loop_.add(&self);
  const auto ended = [connection](const std::exception_ptr&) {
    connection->transport_.close();
    connection->loop_.remove(connection.get());
  };
  asio::co_spawn(self.loop_.io(), self.run(), ended);
}

void Connection::enter(Phase phase, int64_t timeout_ms) {
  phase_ = phase;
  entered_ns_ = Clock::system().monotonic_ns();
  deadline_ns_ = timeout_ms < 0 ? kNever : entered_ns_ + timeout_ms * 1'000'000;
}

void Connection::check(int64_t now_ns) {
  if (closed_ || now_ns < deadline_ns_) return;
  HttpCounters& counters = services_.counters;
  if (phase_ == Phase::idle) add(counters.idle_timeouts);
  if (phase_ == Phase::header || phase_ == Phase::handshake) add(counters.header_timeouts);
  if (phase_ == Phase::body || phase_ == Phase::sending) add(counters.stalled);
  close();
}

void Connection::close_if_idle_since(int64_t since_ns) {
  const bool idle = phase_ == Phase::idle || phase_ == Phase::handshake || phase_ == Phase::lingering;
  if (idle && entered_ns_ <= since_ns) close();
}

void Connection::close() {
  closed_ = true;
  transport_.close();  // what waits on it ends with an error
}

Connection::Awaitable<void> Connection::run() {
  enter(Phase::handshake, services_.config.header_timeout_ms);
  const boost::system::error_code failed = co_await transport_.handshake();
  if (failed) co_return;
  while (true) {
    const bool more = co_await serve_one();
    if (!more) break;
  }
  co_await linger();
}

Connection::Awaitable<bool> Connection::read_more() {
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
  if (in_begin_ > 0) {
    in_.replace(0, in_end_ - in_begin_, in_, in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_end_ == in_.size()) in_.resize(in_.size() * 2);  // as far as the parser's header limit lets it come
  const size_t n = co_await transport_.read_some(in_.data() + in_end_, in_.size() - in_end_);
  in_end_ += n;
  co_return n > 0;
}

Connection::Awaitable<bool> Connection::read_header() {
  enter(Phase::idle, services_.config.idle_timeout_ms);
  while (true) {
    if (in_end_ > in_begin_) {
      if (phase_ == Phase::idle) {
        enter(Phase::header, services_.config.header_timeout_ms);
        begun_ns_ = Clock::system().monotonic_ns();
      }
      in_begin_ += parser_->feed(std::string_view(in_.data() + in_begin_, in_end_ - in_begin_));
    }
    if (parser_->header_done() || parser_->refused() != nullptr) co_return true;
    const bool more = co_await read_more();
    if (!more) co_return false;
  }
}

// Adds what the body has grown to what all bodies take.
bool Connection::charge_body() {
  const uint64_t size = parser_->request().body.size();
  const uint64_t grown = size - charged_bytes_;
  charged_bytes_ = size;
  const uint64_t all = services_.counters.buffered_bytes.fetch_add(grown) + grown;
  return all <= services_.config.max_buffered_bytes;
}

Connection::Awaitable<bool> Connection::read_body() {
  if (!charge_body()) overfull_ = true;
  if (!parser_->done() && in_.size() < kBodyReadBytes) in_.resize(kBodyReadBytes);
  while (!parser_->done() && parser_->refused() == nullptr && !overfull_) {
    enter(Phase::body, services_.config.stall_timeout_ms);
    const bool more = co_await read_more();
    if (!more) co_return false;
    in_begin_ += parser_->feed(std::string_view(in_.data() + in_begin_, in_end_ - in_begin_));
    if (!charge_body()) overfull_ = true;
  }
  if (in_end_ - in_begin_ == 0 && in_.size() > kReadBytes) {
    in_begin_ = in_end_ = 0;
    in_.resize(kReadBytes);
    in_.shrink_to_fit();
  }
  add(services_.counters.body_bytes_in, charged_bytes_);
  co_return true;
}

Connection::Awaitable<bool> Connection::on_worker(std::function<void()> job) {
  bool taken = true;
  auto start = [&](auto handler) {
    const auto resume = std::make_shared<decltype(handler)>(std::move(handler));
    Loop& loop = loop_;
    const auto back = [&loop, resume] { loop.post([resume] { (*resume)(); }); };
    taken = services_.pool.submit([work = std::move(job), back] {
      work();
      back();
    });
    if (!taken) back();
  };
  enter(Phase::work, -1);
  co_await asio::async_initiate<decltype(asio::use_awaitable), void()>(std::move(start), asio::use_awaitable);
  if (!taken) add(services_.counters.overloaded);
  co_return taken;
}

Connection::Awaitable<HttpResponse> Connection::answer(const Admission& admission) {
  HttpResponse response;
  HttpRequest& request = parser_->request();
  if (admission.route->place == Place::connection) {
    response = dispatcher_.handle(admission, request);
    co_return response;
  }
  if (std::optional<HttpResponse> quick = dispatcher_.handle_at_once(admission, request)) {
    add(services_.counters.answered_at_once);
    co_return *std::move(quick);
  }
  std::function<void()> job = [&] { response = dispatcher_.handle(admission, request); };
  const bool taken = co_await on_worker(std::move(job));
  if (!taken) response = error_reply({ErrorCode::would_block, "the server is busy; nothing was done, try again"});
  co_return response;
}

Connection::Awaitable<bool> Connection::serve_one() {
  const ServerConfig& config = services_.config;
  services_.counters.buffered_bytes.fetch_sub(charged_bytes_);
  charged_bytes_ = 0;
  sent_bytes_ = 0;
  parser_ = std::make_unique<RequestParser>(
      RequestLimits{static_cast<uint32_t>(config.max_header_bytes), 100, config.max_request_body_bytes});
  const bool came = co_await read_header();
  if (!came) co_return false;
  add(services_.counters.requests_total);
  HttpRequest& request = parser_->request();
  Admission admission;
  HttpResponse response;
  if (parser_->refused() == nullptr) {
    admission = dispatcher_.admit(request);
    if (!admission.refusal) {
      if (request.expects_continue && !parser_->done()) {
        const bool told = co_await write_all("HTTP/1.1 100 Continue\r\n\r\n", "");
        if (!told) co_return false;
      }
      const bool whole = co_await read_body();
      if (!whole) co_return false;
    }
  }
  if (parser_->refused() != nullptr) {
    add(services_.counters.malformed);
    response = error_reply(parser_->refused()->status, "invalid_argument", parser_->refused()->message);
    response.close = true;
  } else if (overfull_) {
    overfull_ = false;
    add(services_.counters.overloaded);
    response = error_reply({ErrorCode::would_block, "too many request bodies in memory; nothing was done, try again"});
    response.close = true;
  } else if (admission.refusal) {
    response = std::move(*admission.refusal);
    response.close = response.close || !parser_->done();
  } else {
    response = co_await answer(admission);
  }
  // HTTP/1.0 has no chunks: the end of the connection is the end of such a body.
  if (response.source && !response.source_size && !request.http11) response.close = true;
  const bool keep = request.keep_alive && !response.close && !services_.draining;
  const bool complete = co_await send(response, keep);
  if (!complete) add(services_.counters.cut_off);
  log(response, admission, complete);
  co_return keep&& complete;
}

void Connection::log(const HttpResponse& response, const Admission& admission, bool complete) {
  const int64_t took_ns = Clock::system().monotonic_ns() - begun_ns_;
  services_.counters.answered(response.status, took_ns);
  add(services_.counters.body_bytes_out, sent_bytes_);
  if (!log_.enabled()) return;
  AccessEntry entry;
  entry.remote = transport_.remote();
  entry.account = admission.caller.account;
  entry.caller = admission.caller.id;
  entry.method = parser_->request().method;
  entry.route = admission.target.path();
  if (const std::string* path = admission.target.parameter("path")) entry.path = *path;
  entry.status = response.status;
  entry.bytes_in = charged_bytes_;
  entry.bytes_out = sent_bytes_;
  entry.took_ns = took_ns;
  entry.complete = complete;
  log_.add(entry);
}

std::string Connection::header_of(const HttpResponse& response, bool keep) const {
  std::string head;
  head.reserve(256);
  fmt::format_to(std::back_inserter(head), "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status,
                 reason_phrase(response.status), response.content_type);
  if (!response.source) {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", response.body.size());
  } else if (response.source_size) {
    fmt::format_to(std::back_inserter(head), "Content-Length: {}\r\n", *response.source_size);
  } else if (parser_->request().http11) {
    head += "Transfer-Encoding: chunked\r\n";
  }
  for (const auto& [name, value] : response.headers) {
    fmt::format_to(std::back_inserter(head), "{}: {}\r\n", name, value);
  }
  if (!keep) head += "Connection: close\r\n";
  if (keep && !parser_->request().http11) head += "Connection: keep-alive\r\n";
  head += "\r\n";
  return head;
}

Connection::Awaitable<bool> Connection::write_all(std::string_view first, std::string_view second) {
  while (!first.empty() || !second.empty()) {
    enter(Phase::sending, services_.config.stall_timeout_ms);
    const size_t n = co_await transport_.write_some(first, second.substr(0, kWriteBytes));
    if (n == 0) co_return false;
    const size_t of_first = std::min(n, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(n - of_first);
    sent_bytes_ += n - of_first;
  }
  co_return true;
}

Connection::Awaitable<bool> Connection::send(HttpResponse& response, bool keep) {
  const bool head = parser_->request().method == "HEAD";
  const bool chunked = response.source && !response.source_size && parser_->request().http11;
  const std::string header = header_of(response, keep);
  const std::string_view body = head ? std::string_view() : response.body.view();
  const bool begun = co_await write_all(header, body);
  if (!begun) co_return false;
  if (head || !response.source) co_return true;
  const bool complete = co_await send_source(response, chunked);
  co_return complete;
}

Connection::Awaitable<bool> Connection::send_source(HttpResponse& response, bool chunked) {
  BodySource& source = *response.source;
  bool complete = false;
  while (true) {
    Result<Bytes> part;
    std::function<void()> job = [&] { part = source.next(); };
    const bool taken = co_await on_worker(std::move(job));
    if (!taken || !part) break;
    if (part->empty()) {
      complete = true;
      break;
    }
    const std::string size = chunked ? fmt::format("{:x}\r\n", part->size()) : std::string();
    const bool sent = co_await write_all(size, part->view());
    if (!sent) break;
    if (chunked) {
      const bool ended = co_await write_all("\r\n", "");
      if (!ended) break;
    }
  }
  // Ending a source may have to wait for what it does: not on this thread.
  std::unique_ptr<BodySource> ending = std::move(response.source);
  services_.pool.submit_always([last = std::move(ending)]() mutable { last.reset(); });
  if (!complete || !chunked) co_return complete;
  const bool closed = co_await write_all("0\r\n\r\n", "");
  co_return closed;
}

// A client that is still sending its body would lose the answer to a reset: what it sends is read and dropped.
Connection::Awaitable<void> Connection::linger() {
  if (closed_) co_return;
  enter(Phase::lingering, kLinger_ms);
  transport_.end_sending();
  uint64_t dropped = 0;
  while (dropped < kLingerBytes) {
    const size_t n = co_await transport_.read_some(in_.data(), in_.size());
    if (n == 0) break;
    dropped += n;
  }
}

}  // namespace ragfs::server
