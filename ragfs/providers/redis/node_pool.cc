#include "ragfs/providers/redis/node_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "ragfs/base/clock.h"

namespace ragfs::redis {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
// Calls on every connection before another is opened. Measured: two callers who hand one connection to each other wait
// longer than two with one each; sharing pays where connections are fewer than callers.
constexpr size_t kShareFrom = 1;
// A connection unused for this long is looked at before it is used: the server may have closed it.
constexpr int64_t kIdleNs = 500 * kNsPerMs;
constexpr int kMostAttempts = 3;

std::unexpected<Error> pool_closed() { return fail(ErrorCode::unavailable, "the redis provider is closed"); }

}  // namespace

NodePool::NodePool(ClientContext& context, Incarnation& incarnation, std::string position, ServerRole role,
                   Locate locate)
    : context_(context),
      incarnation_(incarnation),
      position_(std::move(position)),
      role_(role),
      locate_(std::move(locate)) {}

NodePool::~NodePool() { close(); }

Result<std::vector<RespValue>> NodePool::run(std::string_view commands, size_t replies, Deadline deadline,
                                             bool repeatable) {
  Error last{ErrorCode::unavailable, "no connection"};
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    auto connection = acquire(deadline);
    if (!connection) return std::unexpected(connection.error());
    Exchange exchange(commands, replies, deadline);
    Result<void> done = run_on(**connection, exchange);
    if (done) return std::move(exchange.answers);
    last = std::move(done.error());
    const bool lost = last.code == ErrorCode::unavailable;
    if (!lost || (exchange.sent && !repeatable) || deadline.expired()) break;
    if (exchange.sent) context_.stats.add(Event::repeated_reads);
  }
  return std::unexpected(std::move(last));
}

Result<void> NodePool::run_on(Connection& connection, Exchange& exchange) {
  const int64_t now_ns = Clock::system().monotonic_ns();
  connection.used_ns.store(now_ns, std::memory_order_relaxed);
  int64_t verified_ns = connection.verified_ns.load(std::memory_order_relaxed);
  const bool due = connection.identity.known && now_ns - verified_ns > context_.config.verify_interval_ms * kNsPerMs;
  const bool mine = due && connection.verified_ns.compare_exchange_strong(verified_ns, now_ns);
  const bool was_usable = connection.pipeline.usable();
  Result<void> done = mine ? run_verifying(connection, exchange) : connection.pipeline.run(exchange);
  if (!done && was_usable && !connection.pipeline.usable()) context_.stats.add(Event::connections_lost);
  return done;
}

// The same commands behind those that ask who the server is: one round trip still.
Result<void> NodePool::run_verifying(Connection& connection, Exchange& exchange) {
  std::string all(identity_commands());
  all.append(exchange.commands);
  Exchange longer(all, exchange.replies + kIdentityReplies, exchange.deadline);
  Result<void> done = connection.pipeline.run(longer);
  exchange.sent = longer.sent;
  if (!done) return done;
  const ServerIdentity now = identity_in(longer.answers);
  context_.stats.server_reports(now.run_id, now.evicted_keys, now.expired_keys);
  if (now.text() != connection.identity.text()) {
    drop_connections("the server is not the one it was");
    return fail(ErrorCode::unavailable, fmt::format("redis {}: its role changed", connection.pipeline.server()));
  }
  exchange.answers.assign(std::make_move_iterator(longer.answers.begin() + kIdentityReplies),
                          std::make_move_iterator(longer.answers.end()));
  return {};
}

bool NodePool::verify(Deadline deadline) {
  auto connection = acquire(deadline);
  if (!connection || !(*connection)->identity.known) return false;
  Exchange nothing_else({}, 0, deadline);
  return run_verifying(**connection, nothing_else).has_value();
}

size_t NodePool::most_locked() const {
  // Where a server does not say who it is, every connection counts as a change: one must do.
  return unidentified_ ? 1 : static_cast<size_t>(context_.config.pool_size);
}

std::shared_ptr<Connection> NodePool::pick_locked() {
  std::erase_if(connections_, [](const auto& at) { return !at->pipeline.usable(); });
  std::shared_ptr<Connection> best;
  for (const auto& at : connections_) {
    if (best == nullptr || at->pipeline.load() < best->pipeline.load()) best = at;
    if (best->pipeline.load() == 0) break;
  }
  return best;
}

Result<std::shared_ptr<Connection>> NodePool::acquire(Deadline deadline) {
  int64_t waited_since_ns = 0;
  MutexLock lock(mutex_);
  const uint64_t failed_before = failed_openings_;
  for (;;) {
    if (closed_) return pool_closed();
    std::shared_ptr<Connection> best = pick_locked();
    const bool busy = best == nullptr || best->pipeline.load() >= kShareFrom;
    if (best == nullptr && failed_openings_ != failed_before) return std::unexpected(open_error_);
    if (busy && !opening_ && connections_.size() < most_locked()) start_opening_locked();
    if (best != nullptr) {
      const int64_t now_ns = Clock::system().monotonic_ns();
      if (waited_since_ns != 0) {
        context_.stats.add(Event::pool_wait_ns, static_cast<uint64_t>(now_ns - waited_since_ns));
      }
      const bool idle = best->pipeline.load() == 0 && now_ns - best->used_ns.load() > kIdleNs;
      if (!idle || best->pipeline.looks_alive()) return best;
      context_.stats.add(Event::connections_idle_closed);
      best->pipeline.close({ErrorCode::unavailable, "the server closed the idle connection"});
      continue;
    }
    if (waited_since_ns == 0) {
      waited_since_ns = Clock::system().monotonic_ns();
      context_.stats.add(Event::pool_waits);
    }
    if (!opened_.wait_until(mutex_, deadline) && connections_.empty() && failed_openings_ == failed_before) {
      const std::string before = open_error_.message.empty() ? "" : fmt::format("; before: {}", open_error_.message);
      // Nothing was sent, but the caller waited its time: the server counts as silent.
      return fail(ErrorCode::timeout, fmt::format("redis {}: no connection in time{}", position_, before));
    }
  }
}

void NodePool::start_opening_locked() {
  if (opener_.joinable()) opener_.join();  // it has cleared opening_: nothing is left for it to do
  try {
    opener_ = std::thread([this] { open_one(); });
    opening_ = true;
  } catch (const std::system_error& error) {
    ++failed_openings_;
    open_error_ = {ErrorCode::unavailable, fmt::format("no thread to connect to redis: {}", error.what())};
  }
}

void NodePool::open_one() {
  Result<std::shared_ptr<Connection>> opened = open_any(Deadline::in_ms(context_.config.connect_timeout_ms));
  if (opened) {
    context_.stats.add(Event::connects);
    const std::string identity = (*opened)->identity.known ? (*opened)->identity.text() : "";
    {
      MutexLock lock(mutex_);
      drop_others_locked(identity);
      unidentified_ = identity.empty();
    }
    // The old server's connections are gone and the new one's is not in the pool: nothing is believed in between.
    if (role_ == ServerRole::primary && incarnation_.observe(position_, (*opened)->identity)) {
      context_.stats.add(Event::identity_changes);
    }
  } else {
    context_.stats.add(Event::connect_failures);
  }
  MutexLock lock(mutex_);
  opening_ = false;
  if (opened && !closed_) {
    connections_.push_back(std::move(*opened));
  } else if (!opened) {
    ++failed_openings_;
    open_error_ = opened.error();
  }
  opened_.notify_all();
}

Result<std::shared_ptr<Connection>> NodePool::open_any(Deadline deadline) {
  auto candidates = locate_(deadline);
  if (!candidates) return std::unexpected(candidates.error());
  const ConnectOptions options{context_.config.credentials, context_.config.db, true};
  Error last{ErrorCode::unavailable, fmt::format("redis {}: no server is known", position_)};
  for (size_t i = 0; i < candidates->size(); ++i) {
    const int64_t share_ns = deadline.remaining_ns() / static_cast<int64_t>(candidates->size() - i);
    auto opened = open_connection(context_, (*candidates)[i], options, Deadline::in_ns(share_ns));
    if (!opened) {
      last = opened.error();
      continue;
    }
    const ServerIdentity& identity = (*opened)->identity;
    if (role_ == ServerRole::replica || !identity.known || identity.primary) return opened;
    last = {ErrorCode::unavailable,
            fmt::format("redis {}: it is a replica; its primary is wanted", (*candidates)[i].text())};
  }
  return std::unexpected(std::move(last));
}

void NodePool::drop_others_locked(const std::string& identity) {
  if (identity == identity_ && !identity.empty()) return;
  identity_ = identity;
  const Error gone{ErrorCode::unavailable, fmt::format("redis {}: another server took its place", position_)};
  for (const auto& at : connections_) at->pipeline.close(gone);
  connections_.clear();
}

void NodePool::drop_connections(const std::string& why) {
  MutexLock lock(mutex_);
  for (const auto& at : connections_) at->pipeline.close({ErrorCode::unavailable, why});
  connections_.clear();
}

void NodePool::close() {
  std::thread opener;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    for (const auto& at : connections_) at->pipeline.close({ErrorCode::unavailable, "the redis provider is closed"});
    connections_.clear();
    opened_.notify_all();
    opener.swap(opener_);
  }
  if (opener.joinable()) opener.join();
}

size_t NodePool::connections() const {
  MutexLock lock(mutex_);
  return connections_.size();
}

size_t NodePool::load() const {
  MutexLock lock(mutex_);
  size_t sum = 0;
  for (const auto& at : connections_) sum += at->pipeline.load();
  return sum;
}

}  // namespace ragfs::redis
