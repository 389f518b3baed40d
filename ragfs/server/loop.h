// Loop: one thread that serves a share of the connections.
//
// A connection lives on one loop, so what it does needs no lock. The loop looks over its connections a few times a
// second and closes those that are past their deadline: no timer for each request. Thread-safety: all but post() and
// the atomic counts is for the loop's own thread.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <set>
#include <thread>

namespace ragfs::server {

class Connection;

class Loop {
 public:
  static constexpr int64_t kSweep_ms = 100;

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
  void add(Connection* connection);
  void remove(Connection* connection);
  // Those without a request in progress; then all of them.
  void close_idle();
  void close_all();
  // Of any thread.
  size_t connections() const { return count_.load(); }

 private:
  void sweep();

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer timer_;
  std::set<Connection*> connections_;
  std::atomic<size_t> count_{0};
  std::thread thread_;
};

}  // namespace ragfs::server
