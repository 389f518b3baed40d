#include "ragfs/providers/redis/cluster_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "ragfs/base/clock.h"
#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kRefreshEveryNs = 100 * kNsPerMs;

Endpoint endpoint_at(const std::string& position, bool tls) {
  auto endpoint = Endpoint::parse((tls ? "rediss://" : "redis://") + position);
  return endpoint ? *endpoint : Endpoint{.host = position, .port = 0, .tls = tls};
}

std::string position_of(const std::string& host, int64_t port) {
  return Endpoint{.host = host, .port = static_cast<uint16_t>(port)}.text();
}

}  // namespace

SlotOwners parse_slots(const RespValue& answer, const std::string& asked_host) {
  SlotOwners owners(kSlots);
  bool any = false;
  for (const RespValue& range : answer.items) {
    if (!range.is_array() || range.items.size() < 3 || range.items[2].items.size() < 2) return {};
    const int64_t first = range.items[0].integer;
    const int64_t last = range.items[1].integer;
    if (first < 0 || last >= kSlots || first > last) return {};
    const RespValue& node = range.items[2];
    const std::string host = node.items[0].text.empty() ? asked_host : node.items[0].text.str();
    const std::string position = position_of(host, node.items[1].integer);
    std::fill(owners.begin() + first, owners.begin() + last + 1, position);
    any = true;
  }
  return any ? owners : SlotOwners();
}

ClusterRouter::ClusterRouter(ClientContext& context, Incarnation& incarnation)
    : context_(context), incarnation_(incarnation) {}

ClusterRouter::~ClusterRouter() { close(); }

std::shared_ptr<NodePool> ClusterRouter::pool_locked(const std::string& position) {
  std::shared_ptr<NodePool>& pool = pools_[position];
  if (pool == nullptr) {
    const Endpoint endpoint = endpoint_at(position, context_.config.endpoints.front().tls);
    pool = std::make_shared<NodePool>(context_, incarnation_, position, ServerRole::primary,
                                      [endpoint](Deadline) { return std::vector<Endpoint>{endpoint}; });
  }
  return pool;
}

Result<void> ClusterRouter::wait_for_map_locked(Deadline deadline) {
  const uint64_t failures_before = failures_;
  for (;;) {
    if (closed_) return fail(ErrorCode::unavailable, "the redis provider is closed");
    refresh_if_due_locked();
    if (!owners_.empty()) return {};
    if (failures_ != failures_before) return std::unexpected(error_);
    if (!refreshed_.wait_until(mutex_, deadline) && owners_.empty() && failures_ == failures_before) {
      return fail(ErrorCode::timeout, fmt::format("redis cluster: no node told its slots in time{}{}",
                                                  error_.message.empty() ? "" : "; before: ", error_.message));
    }
  }
}

Result<std::shared_ptr<NodePool>> ClusterRouter::owner(uint16_t slot, Deadline deadline) {
  MutexLock lock(mutex_);
  if (auto known = wait_for_map_locked(deadline); !known) return std::unexpected(known.error());
  const std::string& position = owners_[slot];
  if (!position.empty()) return pool_locked(position);
  stale_ = true;
  refresh_if_due_locked();
  return fail(ErrorCode::unavailable, fmt::format("redis cluster: no node owns slot {}", slot));
}

Result<std::shared_ptr<NodePool>> ClusterRouter::redirected(NodePool& from, const Redirect& to, bool moved,
                                                            Deadline deadline) {
  const std::string host = to.host.empty() ? endpoint_at(from.position(), false).host : to.host;
  const std::string target = position_of(host, to.port);
  if (!moved) {
    MutexLock lock(mutex_);
    return pool_locked(target);
  }
  // The owner's word counts while it is the primary that it was; a demoted one only repeats what was done to it.
  const bool by_owner = from.verify(deadline);
  if (!by_owner) {
    context_.stats.add(Event::slot_takeovers);
    incarnation_.changed();
  }
  MutexLock lock(mutex_);
  if (closed_) return fail(ErrorCode::unavailable, "the redis provider is closed");
  if (to.slot < kSlots && !owners_.empty() && owners_[to.slot] == from.position()) owners_[to.slot] = target;
  stale_ = true;
  refresh_if_due_locked();
  return pool_locked(target);
}

void ClusterRouter::doubt(NodePool&) {
  MutexLock lock(mutex_);
  stale_ = true;
  refresh_if_due_locked();
}

Result<std::vector<std::shared_ptr<NodePool>>> ClusterRouter::primaries(Deadline deadline) {
  MutexLock lock(mutex_);
  if (auto known = wait_for_map_locked(deadline); !known) return std::unexpected(known.error());
  std::vector<std::shared_ptr<NodePool>> out;
  for (const std::string& position : std::set<std::string>(owners_.begin(), owners_.end())) {
    if (!position.empty()) out.push_back(pool_locked(position));
  }
  return out;
}

void ClusterRouter::refresh_if_due_locked() {
  if (!stale_ || refreshing_ || closed_) return;
  const int64_t now_ns = Clock::system().monotonic_ns();
  if (refreshed_ns_ != 0 && now_ns - refreshed_ns_ < kRefreshEveryNs && !owners_.empty()) return;
  if (refresher_.joinable()) refresher_.join();  // it has cleared refreshing_: nothing is left for it to do
  try {
    refresher_ = std::thread([this] { refresh(); });
    refreshing_ = true;
    stale_ = false;
  } catch (const std::system_error& error) {
    ++failures_;
    error_ = {ErrorCode::unavailable, fmt::format("no thread to ask the redis cluster: {}", error.what())};
  }
}

void ClusterRouter::refresh() {
  Result<SlotOwners> owners = read_map();
  context_.stats.add(owners ? Event::topology_refreshes : Event::topology_failures);
  if (owners) {
    SlotOwners before;
    {
      MutexLock lock(mutex_);
      before = owners_;
    }
    if (before.empty()) {
      meet_all(*owners);
    } else if (!changes_are_orderly(before, *owners)) {
      context_.stats.add(Event::slot_takeovers);
      incarnation_.changed();
    }
    publish(*std::move(owners));
    return;
  }
  MutexLock lock(mutex_);
  refreshing_ = false;
  stale_ = true;
  refreshed_ns_ = Clock::system().monotonic_ns();
  ++failures_;
  error_ = owners.error();
  refreshed_.notify_all();
}

Result<SlotOwners> ClusterRouter::read_map() {
  std::vector<Endpoint> seeds;
  {
    MutexLock lock(mutex_);
    const bool tls = context_.config.endpoints.front().tls;
    for (const auto& [position, pool] : pools_) seeds.push_back(endpoint_at(position, tls));
    for (const Endpoint& endpoint : context_.config.endpoints) {
      if (std::ranges::find(seeds, endpoint) == seeds.end()) seeds.push_back(endpoint);
    }
    // Another one each time: the first must not be the dead one for ever.
    std::ranges::rotate(seeds, seeds.begin() + static_cast<ptrdiff_t>(seed_++ % seeds.size()));
  }
  std::string commands;
  append_command(commands, {"CLUSTER", "SLOTS"});
  Error last{ErrorCode::unavailable, "no node of the redis cluster is known"};
  for (const Endpoint& seed : seeds) {
    {
      MutexLock lock(mutex_);
      if (closed_) return fail(ErrorCode::unavailable, "the redis provider is closed");
    }
    const Deadline deadline = Deadline::in_ms(std::max<int64_t>(context_.config.connect_timeout_ms / 2, 1));
    auto connection = open_connection(context_, seed, {context_.config.credentials, 0, false}, deadline);
    if (!connection) {
      last = connection.error();
      continue;
    }
    auto answers = ask(context_, **connection, commands, 1, deadline);
    if (!answers) {
      last = answers.error();
      continue;
    }
    SlotOwners owners = parse_slots(answers->front(), seed.host);
    if (!owners.empty()) return owners;
    last = {ErrorCode::unavailable, fmt::format("redis {}: its cluster has no slots yet", seed.text())};
  }
  return std::unexpected(std::move(last));
}

bool ClusterRouter::changes_are_orderly(const SlotOwners& before, const SlotOwners& after) {
  std::map<std::string, std::vector<size_t>> lost;  // by old owner
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (!before[slot].empty() && before[slot] != after[slot]) lost[before[slot]].push_back(slot);
  }
  std::string commands;
  append_command(commands, {"CLUSTER", "SLOTS"});
  for (const auto& [position, slots] : lost) {
    std::shared_ptr<NodePool> old_owner;
    {
      MutexLock lock(mutex_);
      old_owner = pool_locked(position);
    }
    const Deadline deadline = Deadline::in_ms(std::max<int64_t>(context_.config.connect_timeout_ms / 2, 1));
    auto answers = old_owner->run(commands, 1, deadline, true);
    if (!answers || !old_owner->verify(deadline)) return false;
    const SlotOwners its_view = parse_slots(answers->front(), endpoint_at(position, false).host);
    if (its_view.empty()) return false;
    for (const size_t slot : slots) {
      if (its_view[slot] == position) return false;
    }
  }
  return true;
}

// Who the nodes are must be known before the first object comes from one of them.
void ClusterRouter::meet_all(const SlotOwners& owners) {
  std::string commands;
  append_command(commands, {"PING"});
  for (const std::string& position : std::set<std::string>(owners.begin(), owners.end())) {
    if (position.empty()) continue;
    std::shared_ptr<NodePool> pool;
    {
      MutexLock lock(mutex_);
      pool = pool_locked(position);
    }
    // One that does not answer now is met, as a change, when it does.
    (void)pool->run(commands, 1, Deadline::in_ms(context_.config.connect_timeout_ms), true);
  }
}

void ClusterRouter::publish(SlotOwners owners) {
  std::vector<std::shared_ptr<NodePool>> gone;  // ended outside the lock
  MutexLock lock(mutex_);
  const std::set<std::string> in_use(owners.begin(), owners.end());
  owners_ = std::move(owners);
  for (auto at = pools_.begin(); at != pools_.end();) {
    if (in_use.contains(at->first)) {
      ++at;
      continue;
    }
    gone.push_back(std::move(at->second));
    at = pools_.erase(at);
  }
  refreshing_ = false;
  refreshed_ns_ = Clock::system().monotonic_ns();
  refreshed_.notify_all();
}

void ClusterRouter::close() {
  std::thread refresher;
  std::map<std::string, std::shared_ptr<NodePool>> pools;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    refreshed_.notify_all();
    pools = pools_;
  }
  for (const auto& [position, pool] : pools) pool->close();
  {
    MutexLock lock(mutex_);
    refresher.swap(refresher_);
  }
  if (refresher.joinable()) refresher.join();
}

}  // namespace ragfs::redis
