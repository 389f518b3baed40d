// Loop: one thread that serves a share of the connections.
//
// A connection lives on one loop, so what it does needs no lock. The loop looks over its connections a few times a
// second and closes those that are past their deadline: no timer for each request.
// Thread-safety: start(), stop() and post() for any thread, all else for the loop's own.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>

namespace ragfs::server {

class Connection;

class Loop {
 public:
  static constexpr int64_t kSweep_ms = 100;
  static constexpr int64_t kGrace_ms = 500;  // what is on its way to a server that drains still arrives

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void start();
  // Ends the thread; every connection must be gone.
  void stop();

  boost::asio::io_context& io() { return io_; }
  template <typename Function>
  void post(Function function) {
    boost::asio::post(io_, std::move(function));
  }
  // A connection that comes after close_all() is closed at once.
  void add(Connection* connection);
  void remove(Connection* connection);
  // From now on those that have waited for a request for kGrace_ms; or all of them.
  void close_idle();
  void close_all();

 private:
  void sweep();

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer timer_;
  enum class Closing : uint8_t { none, idle, all };
  std::set<Connection*> connections_;
  Closing closing_ = Closing::none;
  std::thread thread_;
};

}  // namespace ragfs::server
