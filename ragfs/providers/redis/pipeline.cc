#include "ragfs/providers/redis/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ragfs/base/pause_point.h"

namespace ragfs::redis {
namespace {

constexpr size_t kMostOutgoingBytes = 64 << 20;

}  // namespace

Pipeline::Pipeline(std::unique_ptr<Transport> transport, RespLimits limits)
    : transport_(std::move(transport)), parser_(limits) {}

Result<void> Pipeline::run(Exchange& exchange) {
  exchange.answers.reserve(exchange.replies);
  if (enter(exchange)) {
    if (exchange.writes_) write_out(exchange);
    RAGFS_PAUSE_POINT("redis.sent");
    while (wait_for_turn(exchange) == Turn::reads) read_replies(exchange);
  }
  if (exchange.error_) return std::unexpected(*std::move(exchange.error_));
  return {};
}

bool Pipeline::enter(Exchange& exchange) {
  MutexLock lock(mutex_);
  if (broken_) {
    exchange.error_ = broken_;
    return false;
  }
  if (waiting_.size() >= kMostInFlight || outgoing_.size() >= kMostOutgoingBytes) {
    exchange.error_ = Error{ErrorCode::would_block, fmt::format("redis {}: too many calls wait", server())};
    return false;
  }
  waiting_.push_back(&exchange);
  load_.store(waiting_.size(), std::memory_order_relaxed);
  exchange.sent = true;
  exchange.writes_ = !writing_;
  if (writing_) outgoing_.append(exchange.commands);
  writing_ = true;
  return true;
}

void Pipeline::write_out(Exchange& exchange) {
  std::string gathered;
  std::string_view bytes = exchange.commands;
  for (;;) {
    const Result<void> written = transport_->write_all(bytes, exchange.deadline);
    MutexLock lock(mutex_);
    if (!written) break_locked(written.error(), &exchange);
    if (broken_ || outgoing_.empty()) {
      writing_ = false;
      exchange.writes_ = false;
      return;
    }
    gathered.clear();
    gathered.swap(outgoing_);
    bytes = gathered;
  }
}

Pipeline::Turn Pipeline::wait_for_turn(Exchange& exchange) {
  MutexLock lock(mutex_);
  while (!exchange.done_) {
    if (!reading_) {
      reading_ = true;
      return Turn::reads;
    }
    if (exchange.changed_.wait_until(mutex_, exchange.deadline) || exchange.done_) continue;
    break_locked({ErrorCode::timeout, fmt::format("redis {}: no answer in time", server())}, &exchange);
  }
  return Turn::done;
}

void Pipeline::read_replies(Exchange& exchange) {
  bool expect_wait = true;
  for (;;) {
    const bool intact = hand_out(exchange);
    {
      MutexLock lock(mutex_);
      if (exchange.done_ || broken_ || !intact) return leave_reading_locked();
    }
    const Result<size_t> got = transport_->read_some(parser_.space(), expect_wait, exchange.deadline);
    if (!got) {
      MutexLock lock(mutex_);
      break_locked(got.error(), &exchange);
      return leave_reading_locked();
    }
    parser_.commit(*got);
    expect_wait = false;
  }
}

bool Pipeline::hand_out(Exchange& reader) {
  for (;;) {
    Result<std::optional<RespValue>> reply = parser_.next();
    if (reply && !reply->has_value()) return true;
    if (reply && (*reply)->type == RespType::push) continue;
    MutexLock lock(mutex_);
    if (!reply) {
      break_locked({reply.error().code, fmt::format("redis {}: {}", server(), reply.error().message)}, &reader);
      return false;
    }
    if (broken_) return false;
    deliver_locked(**std::move(reply), reader);
  }
}

void Pipeline::deliver_locked(RespValue reply, const Exchange& reader) {
  if (waiting_.empty()) {
    return break_locked({ErrorCode::invalid_data, fmt::format("redis {}: an answer nobody asked for", server())},
                        nullptr);
  }
  Exchange& first = *waiting_.front();
  first.answers.push_back(std::move(reply));
  if (first.answers.size() < first.replies) return;
  waiting_.pop_front();
  load_.store(waiting_.size(), std::memory_order_relaxed);
  first.done_ = true;
  if (&first != &reader) first.changed_.notify_one();
}

void Pipeline::leave_reading_locked() {
  reading_ = false;
  // Not one that still writes: it would read only later.
  const auto next = std::ranges::find_if(waiting_, [](const Exchange* at) { return !at->writes_; });
  if (next != waiting_.end()) (*next)->changed_.notify_one();
}

void Pipeline::break_locked(const Error& error, const Exchange* cause) {
  if (broken_) return;
  // What is known about others' calls is only that their answers will not come.
  const Error lost{ErrorCode::unavailable, fmt::format("the connection was given up: {}", error.message)};
  broken_ = lost;
  broken_flag_.store(true, std::memory_order_release);
  transport_->shut_down();
  for (Exchange* at : waiting_) {
    at->error_ = at == cause ? error : lost;
    at->done_ = true;
    at->changed_.notify_one();
  }
  waiting_.clear();
  outgoing_.clear();
  load_.store(0, std::memory_order_relaxed);
}

void Pipeline::close(const Error& error) {
  MutexLock lock(mutex_);
  break_locked(error, nullptr);
}

}  // namespace ragfs::redis
