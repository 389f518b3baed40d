// Connection: one client's connection: requests in, answers out, one after the other.
//
// It reads a request within its limits, has it answered (on a worker when the handler may block), and hands the answer
// over in parts, asking for the next part only when the one before was taken: a slow client holds its own connection
// and one part, never a worker. Whatever it waits for has a deadline, which Loop watches.
// Thread-safety: not synchronised; lives on its loop's thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "ragfs/server/access_log.h"
#include "ragfs/server/dispatcher.h"
#include "ragfs/server/loop.h"
#include "ragfs/server/request_parser.h"
#include "ragfs/server/transport.h"

namespace ragfs::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, Services& services, const Dispatcher& dispatcher, AccessLog& log,
             boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves the connection to its end. On the loop's thread.
  static void start(const std::shared_ptr<Connection>& connection);
  // Closes it when its deadline has passed.
  void check(int64_t now_ns);
  // Closes it when it has waited for a request, or for its client's end, since `since_ns` or longer.
  void close_if_idle_since(int64_t since_ns);
  void close();

 private:
  enum class Phase : uint8_t { handshake, idle, header, body, work, sending, lingering };
  template <typename T>
  using Awaitable = boost::asio::awaitable<T>;

  Awaitable<void> run();
  // False when the connection ends.
  Awaitable<bool> serve_one();
  // False when the client went away; a refusal is in the parser or in `full`.
  Awaitable<bool> read_header();
  Awaitable<bool> read_body();
  Awaitable<bool> read_more();
  // Runs `job` on a worker and comes back to the loop; false when the queue was full.
  Awaitable<bool> on_worker(std::function<void()> job);
  Awaitable<HttpResponse> answer(const Admission& admission);
  Awaitable<bool> send(HttpResponse& response, bool keep);
  Awaitable<bool> send_source(HttpResponse& response, bool chunked);
  Awaitable<bool> write_all(std::string_view first, std::string_view second);
  Awaitable<void> linger();
  std::string header_of(const HttpResponse& response, bool keep) const;
  void enter(Phase phase, int64_t timeout_ms);
  bool charge_body();
  void log(const HttpResponse& response, const Admission& admission, bool complete);

  Loop& loop_;
  Services& services_;
  const Dispatcher& dispatcher_;
  AccessLog& log_;
  Transport transport_;
  std::string in_;  // what was read and not yet parsed: [in_begin_, in_end_)
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  std::unique_ptr<RequestParser> parser_;
  Phase phase_ = Phase::idle;
  int64_t entered_ns_ = 0;  // the phase
  int64_t deadline_ns_ = 0;
  int64_t begun_ns_ = 0;
  uint64_t charged_bytes_ = 0;  // of the request's body, in HttpCounters::buffered_bytes
  uint64_t sent_bytes_ = 0;
  bool overfull_ = false;  // the body was refused because too many are in memory
  bool closed_ = false;
};

}  // namespace ragfs::server
