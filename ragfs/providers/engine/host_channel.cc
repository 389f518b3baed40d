#include "ragfs/providers/engine/host_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "ragfs/base/random.h"
#include "ragfs/engine/ragfs_engine_v1.h"

namespace ragfs::engine {
namespace {

constexpr int64_t kPing_ms = 1'000;
constexpr int64_t kMs_ns = 1'000'000;

// How many of `items` go into one request: by count, and by the bytes of the shared memory.
size_t chunk_of(Op op, std::span<const ChannelItem> items, const EngineConfig& config, uint32_t most_keys) {
  const uint64_t most_bytes = config.arena_bytes / (op == Op::put_if_absent_tx ? 2 : 4);
  uint64_t bytes = 0;
  size_t count = 0;
  for (; count < items.size() && count < most_keys; ++count) {
    // Blocks are powers of two: a value may take twice its size.
    if (op != Op::erase) bytes += 2 * (op == Op::get ? items[count].capacity : items[count].put_bytes());
    if (count > 0 && bytes > most_bytes) break;
  }
  return std::max<size_t>(count, 1);
}

}  // namespace

HostChannel::HostChannel(EngineConfig config, EngineIncarnation& incarnation, EngineStats& stats)
    : config_(std::move(config)), incarnation_(incarnation), stats_(stats) {
  supervisor_ = std::thread([this] { supervise(); });
}

HostChannel::~HostChannel() {
  (void)close(Deadline::in_ms(0));
  supervisor_.join();
}

Result<std::shared_ptr<HostSession>> HostChannel::session() const {
  const MutexLock lock(mutex_);
  if (closing_) return fail(ErrorCode::unavailable, "the provider is closed");
  if (session_ != nullptr && !session_->ended()) return session_;
  return fail(ErrorCode::unavailable, last_failure_ ? last_failure_->message : "the engine host is not there");
}

Result<std::string> HostChannel::call(Op op, std::span<ChannelItem> items, Deadline deadline) {
  const auto session = this->session();
  if (!session) return std::unexpected(session.error());
  struct Part {
    std::shared_ptr<HostSession::Sent> sent;
    std::span<ChannelItem> items;
  };
  std::deque<Part> under_way;
  std::string message;
  const auto receive_oldest = [&]() -> Result<void> {
    const Part part = std::move(under_way.front());
    under_way.pop_front();
    auto received = (*session)->receive(*part.sent, part.items, deadline);
    if (!received) return received;
    incarnation_.observe(part.sent->header.incarnation);
    if (!part.sent->message.empty()) message = part.sent->message;
    return {};
  };
  const uint32_t most_keys = op == Op::put_if_absent_tx ? kMaxItems : (*session)->abilities().max_batch_keys;
  for (std::span<ChannelItem> rest = items; !rest.empty();) {
    const size_t count = chunk_of(op, rest, config_, most_keys);
    if (op == Op::put_if_absent_tx && count < items.size()) {
      return fail(ErrorCode::too_large, fmt::format("{} values at once need more than half of arena_bytes ({})",
                                                    items.size(), config_.arena_bytes));
    }
    // Whoever holds memory does not wait for more of it: its own answers bring some back first.
    const Deadline room = under_way.empty() ? deadline : Deadline::in_ms(0);
    auto sent = (*session)->send(op, rest.first(count), room, deadline);
    if (!sent && sent.error().code == ErrorCode::would_block && !under_way.empty()) {
      if (auto received = receive_oldest(); !received) return std::unexpected(received.error());
      continue;
    }
    if (!sent) {
      if (sent.error().code == ErrorCode::would_block) {
        stats_.add(Event::arena_waits);
        return fail(ErrorCode::timeout, sent.error().message);
      }
      return std::unexpected(sent.error());
    }
    under_way.push_back({*std::move(sent), rest.first(count)});
    rest = rest.subspan(count);
  }
  while (!under_way.empty()) {
    if (auto received = receive_oldest(); !received) return std::unexpected(received.error());
  }
  return message;
}

Result<std::string> HostChannel::ask(Op op, Deadline deadline) {
  const auto session = this->session();
  if (!session) return std::unexpected(session.error());
  const auto sent = (*session)->send(op, {}, deadline, deadline);
  if (!sent) return std::unexpected(sent.error());
  if (auto received = (*session)->receive(**sent, {}, deadline); !received) return std::unexpected(received.error());
  incarnation_.observe((*sent)->header.incarnation);
  const int32_t status = (*sent)->header.status;
  if (status == RAGFS_ENGINE_OK) return (*sent)->message;
  return fail(status == RAGFS_ENGINE_TIMEOUT ? ErrorCode::timeout : ErrorCode::unavailable, (*sent)->message);
}

Result<void> HostChannel::health(Deadline deadline) {
  auto answer = ask(Op::health, deadline);
  if (!answer) return std::unexpected(answer.error());
  return {};
}

std::vector<std::string> HostChannel::warnings(Deadline deadline) {
  std::vector<std::string> out;
  const auto answer = ask(Op::warnings, deadline);
  if (!answer) return out;
  std::string_view rest = *answer;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
}

Result<void> HostChannel::wait_for_start(Deadline deadline) {
  const MutexLock lock(mutex_);
  while (!settled_ && changed_.wait_until(mutex_, deadline)) {
  }
  if (session_ == nullptr && last_failure_ && last_failure_->code == ErrorCode::config) {
    return std::unexpected(*last_failure_);
  }
  return {};
}

Abilities HostChannel::abilities() const {
  const MutexLock lock(mutex_);
  return abilities_.value_or(config_.assumed);
}

std::string HostChannel::engine_text() const {
  const MutexLock lock(mutex_);
  return engine_text_;
}

void HostChannel::append_metrics(std::vector<ProviderMetric>& out) const {
  std::shared_ptr<HostSession> session;
  {
    const MutexLock lock(mutex_);
    session = session_;
  }
  out.push_back({"host_up", session != nullptr && !session->ended() ? 1.0 : 0.0});
  if (session == nullptr) return;
  out.push_back({"host_pid", static_cast<double>(session->pid())});
  out.push_back({"arena_used_bytes", static_cast<double>(session->used_bytes())});
  out.push_back({"requests_owed", static_cast<double>(session->owed())});
}

void HostChannel::say(std::string_view line) const {
  if (config_.log) config_.log(line);
}

void HostChannel::supervise() {
  int64_t pause_ms = config_.first_pause_ms;
  while (true) {
    const int64_t began_ns = Clock::system().monotonic_ns();
    const bool lived = live();
    // One that served for a while is started again at once; one that cannot start is tried less and less often.
    const int64_t lived_ms = (Clock::system().monotonic_ns() - began_ns) / kMs_ns;
    pause_ms = lived && lived_ms > config_.max_pause_ms ? config_.first_pause_ms : pause_ms;
    const auto jitter = static_cast<int64_t>(random_u64() % static_cast<uint64_t>(pause_ms / 2 + 1));
    const Deadline until = Deadline::in_ms(pause_ms / 2 + jitter);
    pause_ms = std::min(pause_ms * 2, config_.max_pause_ms);
    const MutexLock lock(mutex_);
    settled_ = true;
    changed_.notify_all();
    while (!closing_ && changed_.wait_until(mutex_, until)) {
    }
    if (closing_) return;
  }
}

bool HostChannel::live() {
  {
    const MutexLock lock(mutex_);
    if (closing_) return false;
  }
  stats_.add(Event::host_starts);
  const auto ended = [this] {
    const MutexLock lock(mutex_);
    changed_.notify_all();
  };
  const auto given_up = [this] {
    const MutexLock lock(mutex_);
    return closing_;
  };
  auto started = HostSession::start(config_, stats_, Deadline::in_ms(config_.connect_timeout_ms), ended, given_up);
  if (started) {
    if (auto checked = check(**started); !checked) started = std::unexpected(checked.error());
  }
  if (!started) {
    stats_.add(Event::host_failures);
    bool told = false;
    {
      const MutexLock lock(mutex_);
      told = last_failure_ && last_failure_->message == started.error().message;
      last_failure_ = started.error();
    }
    if (!told) say(fmt::format("{}: {}", config_.name, started.error().message));
    return false;
  }
  // What the engine is, before anybody is answered.
  if (auto sent = (*started)->send(Op::ping, {}, Deadline::in_ms(0), Deadline::in_ms(config_.connect_timeout_ms))) {
    if ((*started)->receive(**sent, {}, Deadline::in_ms(config_.connect_timeout_ms))) {
      incarnation_.observe((*sent)->header.incarnation);
    }
  }
  bool closing = false;
  {
    const MutexLock lock(mutex_);
    session_ = *started;
    abilities_ = abilities_.value_or((*started)->abilities());
    engine_text_ = (*started)->engine_text();
    last_failure_.reset();
    settled_ = true;
    closing = closing_;
    changed_.notify_all();
  }
  if (!closing) watch(**started);
  return true;
}

Result<void> HostChannel::check(const HostSession& session) {
  const Abilities now = session.abilities();
  const MutexLock lock(mutex_);
  if (!settled_) return {};  // nobody was told anything yet
  const Abilities told = abilities_.value_or(config_.assumed);
  const bool less = (told.native_ttl && !now.native_ttl) || told.atomic_put > now.atomic_put ||
                    (!told.may_resurrect && now.may_resurrect) || (told.whole_values && !now.whole_values) ||
                    (abilities_ && told.max_value_bytes > now.max_value_bytes);
  if (!less) return {};
  return fail(ErrorCode::config, "the engine can do less than when it was first reached; restart to use it so");
}

void HostChannel::watch(HostSession& session) {
  int64_t ping_at_ns = 0;
  std::shared_ptr<HostSession::Sent> ping;
  bool closing = false;
  while (!closing && !session.ended()) {
    const int64_t now_ns = Clock::system().monotonic_ns();
    if (session.owing_ns() / kMs_ns > config_.hang_ms) {
      stats_.add(Event::host_kills);
      say(fmt::format("{}: the host owes an answer for {} ms and is killed", config_.name, config_.hang_ms));
      break;
    }
    if (ping != nullptr && session.receive(*ping, {}, Deadline::in_ms(0))) {
      incarnation_.observe(ping->header.incarnation);
      ping.reset();
    }
    if (ping == nullptr && now_ns >= ping_at_ns) {
      if (auto sent = session.send(Op::ping, {}, Deadline::in_ms(0), Deadline::in_ms(0))) ping = *std::move(sent);
      ping_at_ns = now_ns + kPing_ms * kMs_ns;
    }
    const MutexLock lock(mutex_);
    if (!closing_ && !session.ended()) changed_.wait_until(mutex_, Deadline::in_ms(ping != nullptr ? 20 : kPing_ms));
    closing = closing_;
  }
  if (closing) return;
  // A put may be under way in it: with the process it ends, and its socket to the engine with it.
  (void)session.end(Deadline::in_ms(0));
  stats_.add(Event::host_ends);
  {
    const MutexLock lock(mutex_);
    session_.reset();
    last_failure_ = Error{ErrorCode::unavailable, "the engine host went away"};
  }
  say(fmt::format("{}: the host went away and is started again", config_.name));
  incarnation_.host_gone();
}

Result<void> HostChannel::close(Deadline deadline) {
  std::shared_ptr<HostSession> session;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
    session = session_;
    changed_.notify_all();
  }
  if (session == nullptr) return {};
  return session->end(deadline);
}

}  // namespace ragfs::engine
