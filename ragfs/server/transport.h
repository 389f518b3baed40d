// Transport: a TCP connection, with TLS or without, as bytes in and out.
//
// For: Connection, which speaks HTTP over it. Thread-safety: not synchronised; used on its loop's thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace ragfs::server {

class Transport {
 public:
  // `tls` nullptr = none; it must outlive this.
  Transport(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

  // Does nothing without TLS.
  boost::asio::awaitable<boost::system::error_code> handshake();
  // 0 bytes = the end, or an error.
  boost::asio::awaitable<size_t> read_some(char* into, size_t size);
  // Some of the two parts, one after the other; 0 = an error.
  boost::asio::awaitable<size_t> write_some(std::string_view first, std::string_view second);
  // Says that nothing more will be sent; what the client still sends can be read.
  void end_sending();
  void close();
  std::string remote() const { return remote_; }

 private:
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  std::string remote_;
};

}  // namespace ragfs::server
