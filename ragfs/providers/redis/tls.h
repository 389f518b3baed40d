// TlsContext and TlsStream: TLS over a socket of ours, by OpenSSL.
//
// TlsContext holds authorities, certificate and rules; one serves all connections. TlsStream is one connection's state;
// its calls never block: they say what the socket must become first. The server's certificate is verified, its name
// too, unless the configuration says otherwise.
// Thread-safety: TlsContext is immutable. A TlsStream may be read by one thread while another writes.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"
#include "ragfs/providers/redis/redis_config.h"

namespace ragfs::redis {

class TlsContext {
 public:
  // Errors: config, naming the file that cannot be used.
  static Result<std::shared_ptr<const TlsContext>> create(const TlsConfig& config);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsStream;
  explicit TlsContext(TlsConfig config) : config_(std::move(config)) {}
  const TlsConfig config_;
  SSL_CTX* context_ = nullptr;
};

class TlsStream {
 public:
  enum class Want : uint8_t { nothing, read, write };
  struct Progress {
    size_t bytes = 0;           // moved
    Want want = Want::nothing;  // what to wait for when bytes is 0
  };

  // `fd` is borrowed, non-blocking and connected. Errors: internal.
  static Result<std::unique_ptr<TlsStream>> create(std::shared_ptr<const TlsContext> context, int fd,
                                                   const std::string& host);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // `bytes` of the answer is 1 when the handshake is done. Errors: unavailable, with the reason.
  Result<Progress> handshake();
  Result<Progress> read(std::span<char> to);
  Result<Progress> write(std::string_view bytes);

 private:
  explicit TlsStream(std::shared_ptr<const TlsContext> context) : context_(std::move(context)) {}
  Result<Progress> after(int result, std::string_view doing) RAGFS_REQUIRES(mutex_);

  const std::shared_ptr<const TlsContext> context_;
  Mutex mutex_;  // around single calls of OpenSSL, none of which blocks
  SSL* ssl_ RAGFS_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace ragfs::redis
