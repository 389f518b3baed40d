#include "ragfs/providers/redis/tls.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

namespace ragfs::redis {
namespace {

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason given";
  char text[256];
  ERR_error_string_n(code, text, sizeof text);
  return text;
}

std::unexpected<Error> unusable(std::string_view field, const std::string& file) {
  return fail(ErrorCode::config, fmt::format("{}: {} cannot be used: {}", field, file, openssl_reason()));
}

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a peer that went away would end the process.
int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool again(int sys_errno) { return sys_errno == EAGAIN || sys_errno == EWOULDBLOCK || sys_errno == EINTR; }

int socket_write(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(fd_of(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && again(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int socket_read(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(fd_of(bio), bytes, static_cast<size_t>(size), 0);
  if (got < 0 && again(errno)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long socket_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ragfs socket");
    BIO_meth_set_write(made, socket_write);
    BIO_meth_set_read(made, socket_read);
    BIO_meth_set_ctrl(made, socket_control);
    return made;
  }();
  return method;
}

bool is_address(const std::string& host) {
  in6_addr six{};
  in_addr four{};
  return ::inet_pton(AF_INET, host.c_str(), &four) == 1 || ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

bool expect_name(SSL* ssl, const std::string& name) {
  if (is_address(name)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  return SSL_set_tlsext_host_name(ssl, name.c_str()) == 1 && SSL_set1_host(ssl, name.c_str()) == 1;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::create(const TlsConfig& config) {
  // The detour keeps the constructor private.
  const std::shared_ptr<TlsContext> made = std::unique_ptr<TlsContext>(new TlsContext(config));
  made->context_ = SSL_CTX_new(TLS_client_method());
  SSL_CTX* context = made->context_;
  if (context == nullptr) return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // What a later call sends again after "not now" may lie elsewhere; parts may go out.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(context, config.skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (!config.ca_file.empty()) {
    if (SSL_CTX_load_verify_locations(context, config.ca_file.c_str(), nullptr) != 1) {
      return unusable("tls_ca_file", config.ca_file);
    }
  } else {
    SSL_CTX_set_default_verify_paths(context);
  }
  if (!config.cert_file.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, config.cert_file.c_str()) != 1) {
      return unusable("tls_cert_file", config.cert_file);
    }
    if (SSL_CTX_use_PrivateKey_file(context, config.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      return unusable("tls_key_file", config.key_file);
    }
  }
  return made;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::unique_ptr<TlsStream>> TlsStream::create(std::shared_ptr<const TlsContext> context, int fd,
                                                     const std::string& host) {
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context)));
  MutexLock lock(stream->mutex_);
  SSL* ssl = SSL_new(stream->context_->context_);
  stream->ssl_ = ssl;
  BIO* bio = BIO_new(socket_method());
  if (ssl == nullptr || bio == nullptr) return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_connect_state(ssl);
  const TlsConfig& config = stream->context_->config_;
  const std::string& name = config.server_name.empty() ? host : config.server_name;
  if (!name.empty() && !expect_name(ssl, name)) return fail(ErrorCode::internal, "OpenSSL: " + openssl_reason());
  return stream;
}

TlsStream::~TlsStream() {
  MutexLock lock(mutex_);
  SSL_free(ssl_);
}

Result<TlsStream::Progress> TlsStream::after(int result, std::string_view doing) {
  if (result > 0) return Progress{static_cast<size_t>(result), Want::nothing};
  const int sys_errno = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ: return Progress{0, Want::read};
    case SSL_ERROR_WANT_WRITE: return Progress{0, Want::write};
    case SSL_ERROR_ZERO_RETURN: return fail(ErrorCode::unavailable, "the server closed the connection");
    case SSL_ERROR_SYSCALL:
      return fail(ErrorCode::unavailable, fmt::format("TLS {}: {}", doing,
                                                      result == 0 || sys_errno == 0 ? "the server closed the connection"
                                                                                    : ::strerror(sys_errno)));
    default: break;
  }
  const long verified = SSL_get_verify_result(ssl_);
  if (verified != X509_V_OK) {
    ERR_clear_error();
    return fail(ErrorCode::unavailable, fmt::format("TLS {}: the server's certificate is refused: {}", doing,
                                                    X509_verify_cert_error_string(verified)));
  }
  return fail(ErrorCode::unavailable, fmt::format("TLS {}: {}", doing, openssl_reason()));
}

Result<TlsStream::Progress> TlsStream::handshake() {
  MutexLock lock(mutex_);
  ERR_clear_error();
  errno = 0;
  return after(SSL_do_handshake(ssl_), "handshake");
}

Result<TlsStream::Progress> TlsStream::read(std::span<char> to) {
  MutexLock lock(mutex_);
  ERR_clear_error();
  errno = 0;
  return after(SSL_read(ssl_, to.data(), static_cast<int>(std::min<size_t>(to.size(), INT_MAX))), "read");
}

Result<TlsStream::Progress> TlsStream::write(std::string_view bytes) {
  MutexLock lock(mutex_);
  ERR_clear_error();
  errno = 0;
  return after(SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX))), "write");
}

}  // namespace ragfs::redis
