#include "ragfs/server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "ragfs/server/connection.h"

namespace ragfs::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr int64_t kMaxLoops = 8;
constexpr int kBacklog = 1024;
constexpr int64_t kAcceptRetry_ms = 50;

struct HostPort {
  std::string host;
  std::string port;
};

// Config::validate() has seen to it that there is a port.
HostPort split_address(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return {host, address.substr(colon + 1)};
}

Result<std::unique_ptr<asio::ssl::context>> make_tls(const ServerConfig& config) {
  if (config.tls_certificate_file.empty()) return nullptr;
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_compression |
                       static_cast<long>(SSL_OP_NO_RENEGOTIATION) | static_cast<long>(SSL_OP_IGNORE_UNEXPECTED_EOF));
  error_code ec;
  context->use_certificate_chain_file(config.tls_certificate_file, ec);
  if (ec) {
    return fail(ErrorCode::config,
                fmt::format("server.tls_certificate_file: {}: {}", config.tls_certificate_file, ec.message()));
  }
  context->use_private_key_file(config.tls_key_file, asio::ssl::context::pem, ec);
  if (ec) return fail(ErrorCode::config, fmt::format("server.tls_key_file: {}: {}", config.tls_key_file, ec.message()));
  return context;
}

Result<tcp::endpoint> resolve(asio::io_context& io, const ServerConfig& config) {
  const HostPort at = split_address(config.address);
  tcp::resolver resolver(io);
  error_code ec;
  const auto found = resolver.resolve(at.host, at.port, tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec || found.empty()) {
    return fail(ErrorCode::config, fmt::format("server.address: {}: {}", config.address, ec.message()));
  }
  return found.begin()->endpoint();
}

}  // namespace

struct HttpServer::Parts {
  Parts(Instance& instance, const ServerConfig& config, std::string version)
      : services(instance, config, std::move(version)) {}

  Result<void> listen();
  void accept();
  void take(Loop& loop, tcp::socket socket);
  void log_forever();
  void take_what_waits_and_close_acceptor();

  Services services;
  std::unique_ptr<AccessLog> log;
  std::unique_ptr<asio::ssl::context> tls;
  std::unique_ptr<Dispatcher> dispatcher;
  std::vector<std::unique_ptr<Loop>> loops;
  std::unique_ptr<tcp::acceptor> acceptor;        // on the first loop
  std::unique_ptr<asio::steady_timer> retry;      // of accepting, when the process is out of descriptors
  std::unique_ptr<asio::steady_timer> housework;  // the access log and the health checks
  tcp::endpoint endpoint;
  size_t next_loop = 0;
  bool stopped = false;
};

Result<void> HttpServer::Parts::listen() {
  const ServerConfig& config = services.config;
  auto tokens = TokenSet::load(config);
  if (!tokens) return std::unexpected(tokens.error());
  auto made = make_tls(config);
  if (!made) return std::unexpected(made.error());
  tls = std::move(*made);
  auto opened = AccessLog::open(config.access_log);
  if (!opened) return std::unexpected(opened.error());
  log = std::move(*opened);
  const int64_t cpus = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const int64_t count = config.io_threads > 0 ? config.io_threads : std::min(cpus, kMaxLoops);
  for (int64_t i = 0; i < count; ++i) loops.push_back(std::make_unique<Loop>());
  asio::io_context& io = loops.front()->io();
  const auto at = resolve(io, config);
  if (!at) return std::unexpected(at.error());
  const bool loopback = at->address().is_loopback();
  if (!loopback && !config.insecure && (tokens->empty() || tls == nullptr)) {
    return fail(ErrorCode::config,
                fmt::format("server.address: {} can be reached from other machines: give tokens (server.tokens_file) "
                            "and a certificate (server.tls_certificate_file), or say --insecure",
                            config.address));
  }
  dispatcher = std::make_unique<Dispatcher>(services, std::move(*tokens), loopback);
  acceptor = std::make_unique<tcp::acceptor>(io);
  error_code ec;
  acceptor->open(at->protocol(), ec);
  if (!ec) acceptor->set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor->bind(*at, ec);
  if (!ec) acceptor->listen(kBacklog, ec);
  if (!ec) endpoint = acceptor->local_endpoint(ec);
  if (ec) {
    const bool taken = ec == asio::error::address_in_use;
    return fail(taken ? ErrorCode::already_exists : ErrorCode::config,
                fmt::format("server.address: {}: {}{}", config.address, ec.message(),
                            taken ? "; another port, or port 0 for any free one" : ""),
                ec.value());
  }
  retry = std::make_unique<asio::steady_timer>(io);
  housework = std::make_unique<asio::steady_timer>(io);
  return {};
}

void HttpServer::Parts::accept() {
  Loop& loop = *loops[next_loop++ % loops.size()];
  acceptor->async_accept(loop.io(), [this, &loop](const error_code& ec, tcp::socket socket) {
    if (!ec) take(loop, std::move(socket));
    if (!acceptor->is_open()) return;  // an event that was queued is not cancelled
    if (!ec) return accept();
    // Out of descriptors or memory, or a client that went away: later again.
    retry->expires_after(std::chrono::milliseconds(kAcceptRetry_ms));
    retry->async_wait([this](const error_code& cancelled) {
      if (!cancelled) accept();
    });
  });
}

void HttpServer::Parts::take(Loop& loop, tcp::socket socket) {
  services.counters.connections_total.fetch_add(1);
  if (services.connections.count() >= static_cast<size_t>(services.config.max_connections)) {
    services.counters.connections_refused.fetch_add(1);
    constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 63\r\n"
        "Retry-After: 1\r\nConnection: close\r\n\r\n"
        "{\"error\":\"too many connections; try again\",\"kind\":\"would_block\"}";
    error_code ec;
    socket.non_blocking(true, ec);
    if (tls == nullptr) socket.write_some(asio::buffer(kFull.data(), kFull.size()), ec);
    return;
  }
  services.connections.add();  // until the Connection ends
  auto shared = std::make_shared<tcp::socket>(std::move(socket));
  loop.post([this, &loop, shared] {
    Connection::start(std::make_shared<Connection>(loop, services, *dispatcher, *log, std::move(*shared), tls.get()));
  });
}

void HttpServer::Parts::log_forever() {
  services.health.tick();
  if (log->enabled()) services.pool.submit([this] { log->flush(); });
  services.counters.log_lines_lost.store(log->lost());
  constexpr int64_t kEvery_ms = 200;
  housework->expires_after(std::chrono::milliseconds(kEvery_ms));
  housework->async_wait([this](const error_code& ec) {
    if (!ec && acceptor->is_open()) log_forever();  // as in accept()
  });
}

// Those who have connected are told that the server goes away; a reset would leave them in doubt.
void HttpServer::Parts::take_what_waits_and_close_acceptor() {
  error_code ec;
  acceptor->cancel(ec);
  acceptor->non_blocking(true, ec);
  for (int taken = 0; taken < kBacklog; ++taken) {
    Loop& loop = *loops[next_loop++ % loops.size()];
    tcp::socket socket(loop.io());
    acceptor->accept(socket, ec);
    if (ec) break;
    take(loop, std::move(socket));
  }
  acceptor->close(ec);
  retry->cancel();
  housework->cancel();
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(Instance& instance, const ServerConfig& config,
                                                      std::string version) {
  auto parts = std::make_unique<Parts>(instance, config, std::move(version));
  if (auto listening = parts->listen(); !listening) return std::unexpected(listening.error());
  Parts& all = *parts;
  all.loops.front()->post([&all] {
    all.log_forever();
    all.accept();
  });
  for (const auto& loop : all.loops) loop->start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::~HttpServer() { stop(Deadline::in_ms(0)); }

std::string HttpServer::url() const {
  const auto address = parts_->endpoint.address();
  const std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return fmt::format("{}://{}:{}", parts_->tls == nullptr ? "http" : "https", host, parts_->endpoint.port());
}

bool HttpServer::stop(Deadline deadline) {
  if (parts_->stopped) return true;
  parts_->stopped = true;
  Parts& all = *parts_;
  ConnectionCount& connections = all.services.connections;
  all.services.draining = true;
  // First everybody who asks is told; only then is nobody there to ask.
  (void)connections.wait_for_none(Deadline::earlier(deadline, Deadline::in_ms(Loop::kGrace_ms)));
  std::promise<void> closed;
  all.loops.front()->post([&all, &closed] {
    all.take_what_waits_and_close_acceptor();
    closed.set_value();
  });
  closed.get_future().wait();  // a few system calls; from here on the count only falls
  for (const auto& loop : all.loops) loop->post([&loop] { loop->close_idle(); });
  const bool drained = connections.wait_for_none(deadline);
  for (const auto& loop : all.loops) loop->post([&loop] { loop->close_all(); });
  (void)connections.wait_for_none(Deadline::never());  // every call on a worker has a deadline of its own
  all.services.pool.stop();
  for (const auto& loop : all.loops) loop->stop();
  all.log->flush();
  return drained;
}

}  // namespace ragfs::server
