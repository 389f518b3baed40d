// Pipeline: one connection that many callers use at once, without a thread of its own.
//
// A caller alone writes its commands and reads its replies on its own thread: one round trip, no hand-over. When
// several call, whoever finds nobody writing writes what has gathered (one system call for all of it), and whoever
// finds nobody reading reads, hands each reply to the caller it belongs to, and passes the reading on once its own is
// there.
//
// Redis answers in order and replies carry no name, so a connection is worth nothing after one reply did not come: when
// a call times out or anything breaks, the connection is shut down, all calls on it fail, and it is never used again.
// Thread-safety: all methods may be called from any thread. No lock is held across I/O.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/providers/redis/resp_parser.h"
#include "ragfs/providers/redis/transport.h"

namespace ragfs::redis {

// Commands that go out in one piece, and their replies. Lives on the caller's stack.
struct Exchange {
  Exchange(std::string_view commands_in, size_t replies_in, Deadline deadline_in)
      : commands(commands_in), replies(replies_in), deadline(deadline_in) {}
  const std::string_view commands;
  const size_t replies;  // that the commands get
  const Deadline deadline;
  std::vector<RespValue> answers;  // complete when run() succeeded
  bool sent = false;               // some of it may have reached the server

 private:
  friend class Pipeline;
  CondVar changed_;  // and below: of the pipeline, under its mutex
  bool writes_ = false;
  bool done_ = false;
  std::optional<Error> error_;
};

class Pipeline {
 public:
  static constexpr size_t kMostInFlight = 4096;

  explicit Pipeline(std::unique_ptr<Transport> transport, RespLimits limits = {});

  // Errors: timeout; unavailable (the connection is gone); invalid_data; would_block (too many calls wait). Error
  // replies are answers, not errors. With exchange.sent false nothing has left this process.
  Result<void> run(Exchange& exchange);

  bool usable() const { return !broken_flag_.load(std::memory_order_acquire); }
  // Calls that wait for replies.
  size_t load() const { return load_.load(std::memory_order_relaxed); }
  // Fails what waits with `error`; final.
  void close(const Error& error);
  // False when the server has closed an idle connection. Does not wait.
  bool looks_alive() const { return transport_->looks_alive(); }
  const std::string& server() const { return transport_->server(); }

 private:
  enum class Turn : uint8_t { done, reads };

  bool enter(Exchange& exchange);
  void write_out(Exchange& exchange);
  Turn wait_for_turn(Exchange& exchange);
  void read_replies(Exchange& exchange);
  // Hands out the replies that are here already; false when the stream is broken.
  bool hand_out(Exchange& reader);
  void deliver_locked(RespValue reply, const Exchange& reader) RAGFS_REQUIRES(mutex_);
  void leave_reading_locked() RAGFS_REQUIRES(mutex_);
  // `cause` is the call that saw the error: it gets it as it is.
  void break_locked(const Error& error, const Exchange* cause) RAGFS_REQUIRES(mutex_);

  const std::unique_ptr<Transport> transport_;
  RespParser parser_;  // of whoever reads
  std::atomic<bool> broken_flag_{false};
  std::atomic<size_t> load_{0};
  Mutex mutex_;
  std::deque<Exchange*> waiting_ RAGFS_GUARDED_BY(mutex_);  // in the order of their commands
  std::string outgoing_ RAGFS_GUARDED_BY(mutex_);           // gathered while somebody writes
  bool writing_ RAGFS_GUARDED_BY(mutex_) = false;
  bool reading_ RAGFS_GUARDED_BY(mutex_) = false;
  std::optional<Error> broken_ RAGFS_GUARDED_BY(mutex_);
};

}  // namespace ragfs::redis
