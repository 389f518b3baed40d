#include "tests/redis/fault_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

namespace ragfs::redis_test {
namespace {

constexpr int kTickMs = 20;

bool send_all(int fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A socket that listens on a loopback port of the system's choice, which is put into *port.
int listen_on(int backlog, uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  (void)::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  (void)::listen(listener, backlog);
  (void)::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return listener;
}

}  // namespace

FaultProxy::FaultProxy(uint16_t server_port) : server_port_(server_port), listener_(listen_on(256, port_)) {
  server_ = std::thread([this] { serve(); });
}

FaultProxy::~FaultProxy() {
  stop_ = true;
  server_.join();
  std::vector<std::thread> relays;
  {
    MutexLock lock(mutex_);
    relays.swap(relays_);
  }
  for (std::thread& at : relays) at.join();
  ::close(listener_);
}

void FaultProxy::set(Fault fault, int one_in, int delay_ms) {
  one_in_ = one_in;
  delay_ms_ = delay_ms;
  fault_ = fault;
}

void FaultProxy::serve() {
  while (!stop_) {
    pollfd at{listener_, POLLIN, 0};
    if (::poll(&at, 1, kTickMs) <= 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    ++accepted_;
    MutexLock lock(mutex_);
    relays_.emplace_back([this, client] { relay(client); });
  }
}

bool FaultProxy::pass(int client, std::string piece, std::string& held) {
  const Fault fault = fault_;
  const bool chosen = ++pieces_ % static_cast<uint64_t>(one_in_.load()) == 0;
  if (fault == Fault::delay) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_.load()));
  if (fault == Fault::swallow && chosen) return true;
  if (fault == Fault::silence) return true;
  if (fault == Fault::cut && chosen) {
    (void)send_all(client, piece.substr(0, piece.size() / 2));
    return false;
  }
  if (fault == Fault::reorder && chosen && held.empty()) {
    held = std::move(piece);
    return true;
  }
  if (!send_all(client, piece)) return false;
  if (held.empty()) return true;
  const std::string late = std::move(held);
  held.clear();
  return send_all(client, late);
}

void FaultProxy::relay(int client) {
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(server_port_);
  const bool wanted = fault_ != Fault::refuse;
  bool open = wanted && ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  std::string held;
  std::string buffer(64 << 10, '\0');
  while (open && !stop_ && fault_ != Fault::refuse) {
    pollfd ends[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (::poll(ends, 2, kTickMs) <= 0) continue;
    for (int i = 0; i < 2 && open; ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t got = ::recv(ends[i].fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) {
        open = false;
      } else {
        std::string piece(buffer.data(), static_cast<size_t>(got));
        open = i == 0 ? send_all(server, piece) : pass(client, std::move(piece), held);
      }
    }
  }
  ::close(client);
  ::close(server);
}

BlackHole::BlackHole() : listener_(listen_on(0, port_)) {
  const sockaddr_in address = loopback(port_);
  for (int i = 0; i < kFillers; ++i) {
    fillers_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(fillers_.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
}

BlackHole::~BlackHole() {
  for (const int fd : fillers_) ::close(fd);
  ::close(listener_);
}

ParrotServer::ParrotServer(std::string answer) : answer_(std::move(answer)), listener_(listen_on(16, port_)) {
  server_ = std::thread([this] { serve(); });
}

ParrotServer::~ParrotServer() {
  stop_ = true;
  server_.join();
  ::close(listener_);
}

void ParrotServer::serve() {
  while (!stop_) {
    pollfd at{listener_, POLLIN, 0};
    if (::poll(&at, 1, kTickMs) <= 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    char asked[4096];
    if (::recv(client, asked, sizeof asked, 0) > 0) (void)send_all(client, answer_);
    ::close(client);
  }
}

}  // namespace ragfs::redis_test
