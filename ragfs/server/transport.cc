#include "ragfs/server/transport.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace ragfs::server {

namespace asio = boost::asio;
using boost::system::error_code;

Transport::Transport(asio::ip::tcp::socket socket, asio::ssl::context* tls) : socket_(std::move(socket)) {
  error_code ec;
  socket_.set_option(asio::ip::tcp::no_delay(true), ec);
  const auto endpoint = socket_.remote_endpoint(ec);
  if (!ec) remote_ = endpoint.address().to_string();
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

asio::awaitable<error_code> Transport::handshake() {
  error_code ec;
  if (tls_)
    co_await tls_->async_handshake(asio::ssl::stream_base::server, asio::redirect_error(asio::use_awaitable, ec));
  co_return ec;
}

asio::awaitable<size_t> Transport::read_some(char* into, size_t size) {
  error_code ec;
  const asio::mutable_buffer buffer(into, size);
  size_t n = 0;
  if (tls_) {
    n = co_await tls_->async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
  } else {
    n = co_await socket_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
  }
  co_return ec ? 0 : n;
}

asio::awaitable<size_t> Transport::write_some(std::string_view first, std::string_view second) {
  error_code ec;
  size_t n = 0;
  const std::array<asio::const_buffer, 2> both{asio::const_buffer(first.data(), first.size()),
                                               asio::const_buffer(second.data(), second.size())};
  if (tls_) {
    n = co_await tls_->async_write_some(both, asio::redirect_error(asio::use_awaitable, ec));
  } else {
    n = co_await socket_.async_write_some(both, asio::redirect_error(asio::use_awaitable, ec));
  }
  co_return ec ? 0 : n;
}

void Transport::end_sending() {
  error_code ec;
  // Not TLS's own farewell: it waits for the client's, and the connection ends either way.
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
}

void Transport::close() {
  error_code ec;
  socket_.close(ec);
}

}  // namespace ragfs::server
