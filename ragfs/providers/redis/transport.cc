#include "ragfs/providers/redis/transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "ragfs/providers/redis/name_resolver.h"

namespace ragfs::redis {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

// Rounded up, so that a deadline that is near is not spun on.
int poll_ms(Deadline deadline) {
  if (deadline.is_never()) return -1;
  const int64_t ms = (deadline.remaining_ns() + kNsPerMs - 1) / kNsPerMs;
  return static_cast<int>(std::min<int64_t>(ms, INT_MAX));
}

// True when an event came, false at the deadline.
bool poll_until(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd at{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&at, 1, poll_ms(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

Result<std::vector<SocketAddress>> addresses_of(const Endpoint& endpoint, Deadline deadline) {
  if (endpoint.path.empty()) return resolve(endpoint.host, endpoint.port, deadline);
  SocketAddress address;
  auto& local = reinterpret_cast<sockaddr_un&>(address.storage);
  local.sun_family = AF_UNIX;
  std::strncpy(local.sun_path, endpoint.path.c_str(), sizeof local.sun_path - 1);
  address.size = sizeof(sockaddr_un);
  return std::vector<SocketAddress>{address};
}

// A connected non-blocking socket, or the negated errno.
int connect_to(const SocketAddress& address, Deadline deadline) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int error = 0;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (!poll_until(fd, POLLOUT, deadline)) {
        error = ETIMEDOUT;
      } else if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
      }
    }
  }
  if (error != 0) {
    ::close(fd);
    return -error;
  }
  const int on = 1;
  if (address.storage.ss_family != AF_UNIX) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return fd;
}

}  // namespace

std::unexpected<Error> Transport::failed(std::string_view doing, int sys_errno) const {
  const ErrorCode code = sys_errno == ETIMEDOUT ? ErrorCode::timeout : ErrorCode::unavailable;
  const std::string why = sys_errno == 0           ? "the server closed the connection"
                          : sys_errno == ETIMEDOUT ? "no answer in time"
                                                   : ::strerror(sys_errno);
  return fail(code, fmt::format("redis {}: {}: {}", server_, doing, why), sys_errno);
}

Result<std::unique_ptr<Transport>> Transport::connect(const Endpoint& endpoint, std::shared_ptr<const TlsContext> tls,
                                                      Deadline deadline) {
  auto addresses = addresses_of(endpoint, deadline);
  if (!addresses) return std::unexpected(addresses.error());
  int fd = -EHOSTUNREACH;
  for (size_t i = 0; i < addresses->size() && fd < 0; ++i) {
    // One address that swallows packets must not eat the others' time.
    const auto share = deadline.is_never()
                           ? deadline
                           : Deadline::in_ns(deadline.remaining_ns() / static_cast<int64_t>(addresses->size() - i));
    fd = connect_to((*addresses)[i], share);
  }
  std::unique_ptr<Transport> made(new Transport(fd, endpoint.text()));
  if (fd < 0) return made->failed("connect", -fd);
  if (!endpoint.tls) return made;
  auto stream = TlsStream::create(std::move(tls), fd, endpoint.host);
  if (!stream) return std::unexpected(stream.error());
  made->tls_ = std::move(*stream);
  if (auto done = made->shake_hands(deadline); !done) return std::unexpected(done.error());
  return made;
}

Transport::~Transport() {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
}

void Transport::shut_down() noexcept { ::shutdown(fd_, SHUT_RDWR); }

Result<void> Transport::wait(short events, std::string_view doing, Deadline deadline) const {
  if (poll_until(fd_, events, deadline)) return {};
  return failed(doing, ETIMEDOUT);
}

Result<void> Transport::wait_for(TlsStream::Want want, std::string_view doing, Deadline deadline) const {
  return wait(want == TlsStream::Want::write ? POLLOUT : POLLIN, doing, deadline);
}

Result<void> Transport::shake_hands(Deadline deadline) {
  for (;;) {
    const auto progress = tls_->handshake();
    if (!progress) return fail(progress.error().code, fmt::format("redis {}: {}", server_, progress.error().message));
    if (progress->bytes > 0) return {};
    if (auto ready = wait_for(progress->want, "TLS handshake", deadline); !ready) return ready;
  }
}

Result<void> Transport::write_all(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    size_t sent = 0;
    TlsStream::Want want = TlsStream::Want::write;
    if (tls_ != nullptr) {
      const auto progress = tls_->write(bytes);
      if (!progress) return std::unexpected(progress.error());
      sent = progress->bytes;
      want = progress->want;
    } else {
      const ssize_t result = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (result < 0 && errno != EAGAIN && errno != EINTR) return failed("send", errno);
      sent = result < 0 ? 0 : static_cast<size_t>(result);
    }
    bytes.remove_prefix(sent);
    if (sent > 0) continue;
    if (auto ready = wait_for(want, "send", deadline); !ready) return ready;
  }
  return {};
}

Result<size_t> Transport::read_some(std::span<char> to, bool expect_wait, Deadline deadline) {
  if (expect_wait && tls_ == nullptr) {
    if (auto ready = wait(POLLIN, "answer", deadline); !ready) return std::unexpected(ready.error());
  }
  for (;;) {
    TlsStream::Want want = TlsStream::Want::read;
    if (tls_ != nullptr) {
      const auto progress = tls_->read(to);
      if (!progress) return std::unexpected(progress.error());
      if (progress->bytes > 0) return progress->bytes;
      want = progress->want;
    } else {
      const ssize_t got = ::recv(fd_, to.data(), to.size(), 0);
      if (got > 0) return static_cast<size_t>(got);
      if (got == 0) return failed("answer", 0);
      if (errno != EAGAIN && errno != EINTR) return failed("answer", errno);
    }
    if (auto ready = wait_for(want, "answer", deadline); !ready) return std::unexpected(ready.error());
  }
}

bool Transport::looks_alive() const {
  pollfd at{.fd = fd_, .events = POLLIN | POLLRDHUP, .revents = 0};
  // TLS may have sent tickets; only an end counts there.
  const short bad = tls_ != nullptr ? POLLRDHUP | POLLHUP | POLLERR : POLLIN | POLLRDHUP | POLLHUP | POLLERR;
  return ::poll(&at, 1, 0) <= 0 || (at.revents & bad) == 0;
}

}  // namespace ragfs::redis
