// Transport: a byte stream to one server: TCP or Unix socket, with or without TLS. Every step has a deadline.
//
// Not for: what the bytes mean (RespParser, Pipeline).
// Thread-safety: one thread may read while another writes; shut_down() may be called by any thread at any time and
// makes both fail.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/providers/redis/redis_config.h"
#include "ragfs/providers/redis/tls.h"

namespace ragfs::redis {

class Transport {
 public:
  // Resolves, connects and, for a TLS endpoint, shakes hands (`tls` is then set). Errors: unavailable, timeout; each
  // names the endpoint and the step.
  static Result<std::unique_ptr<Transport>> connect(const Endpoint& endpoint, std::shared_ptr<const TlsContext> tls,
                                                    Deadline deadline);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  Result<void> write_all(std::string_view bytes, Deadline deadline);
  // At least one byte. `expect_wait` says that nothing has been sent to us yet, most likely: waits before it asks.
  Result<size_t> read_some(std::span<char> to, bool expect_wait, Deadline deadline);
  // False when the server has closed its side, or sent what nobody asked for. Does not wait.
  bool looks_alive() const;
  void shut_down() noexcept;
  const std::string& server() const { return server_; }

 private:
  Transport(int fd, std::string server) : fd_(fd), server_(std::move(server)) {}
  Result<void> wait(short events, std::string_view doing, Deadline deadline) const;
  Result<void> wait_for(TlsStream::Want want, std::string_view doing, Deadline deadline) const;
  Result<void> shake_hands(Deadline deadline);
  std::unexpected<Error> failed(std::string_view doing, int sys_errno) const;

  const int fd_;
  const std::string server_;
  std::unique_ptr<TlsStream> tls_;
};

}  // namespace ragfs::redis
