#include "ragfs/server/loop.h"

#include <chrono>

#include "ragfs/base/clock.h"
#include "ragfs/server/connection.h"

namespace ragfs::server {

Loop::Loop() : io_(1), guard_(boost::asio::make_work_guard(io_)), timer_(io_) {}

Loop::~Loop() { stop(); }

void Loop::start() {
  thread_ = std::thread([this] {
    sweep();
    io_.run();
  });
}

void Loop::stop() {
  if (!thread_.joinable()) return;
  post([this] {
    timer_.cancel();
    guard_.reset();
  });
  thread_.join();
}

void Loop::add(Connection* connection) {
  connections_.insert(connection);
  if (closing_ == Closing::all) connection->close();
}

void Loop::remove(Connection* connection) { connections_.erase(connection); }

void Loop::close_idle() { closing_ = Closing::idle; }

void Loop::close_all() {
  closing_ = Closing::all;
  for (Connection* connection : connections_) connection->close();
}

void Loop::sweep() {
  const int64_t now_ns = Clock::system().monotonic_ns();
  for (Connection* connection : connections_) {
    connection->check(now_ns);
    if (closing_ == Closing::idle) connection->close_if_idle_since(now_ns - kGrace_ms * 1'000'000);
  }
  if (!guard_.owns_work()) return;
  timer_.expires_after(std::chrono::milliseconds(kSweep_ms));
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) sweep();
  });
}

}  // namespace ragfs::server
