#include "ragfs/providers/redis/router.h"

#include <fmt/format.h>

#include <charconv>

#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

uint16_t port_in(std::string_view text) {
  uint16_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  return port;
}

std::string position_of(const RedisConfig& config) {
  return config.mode == Mode::sentinel ? "primary " + config.master_name : config.endpoints.front().text();
}

// "ip=127.0.0.1,port=6380,state=online,..." of INFO's slave lines.
std::string_view part_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const size_t comma = std::min(line.find(','), line.size());
    const std::string_view part = line.substr(0, comma);
    if (part.starts_with(name) && part.size() > name.size() && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
    line.remove_prefix(std::min(comma + 1, line.size()));
  }
  return {};
}

// The value of `name` in a Sentinel's flat list of fields.
std::string_view field_of(const RespValue& fields, std::string_view name) {
  for (size_t i = 0; i + 1 < fields.items.size(); i += 2) {
    if (fields.items[i].text.view() == name) return fields.items[i + 1].text.view();
  }
  return {};
}

}  // namespace

SingleRouter::SingleRouter(ClientContext& context, Incarnation& incarnation)
    : context_(context),
      primary_(std::make_shared<NodePool>(context, incarnation, position_of(context.config), ServerRole::primary,
                                          [this](Deadline deadline) { return locate_primary(deadline); })),
      replica_(context.config.read_from_replica
                   ? std::make_shared<NodePool>(context, incarnation, "replica of " + position_of(context.config),
                                                ServerRole::replica,
                                                [this](Deadline deadline) { return locate_replicas(deadline); })
                   : nullptr) {}

Result<std::shared_ptr<NodePool>> SingleRouter::owner(uint16_t, Deadline) { return primary_; }

Result<std::shared_ptr<NodePool>> SingleRouter::redirected(NodePool& from, const Redirect&, bool, Deadline) {
  return fail(ErrorCode::unavailable,
              fmt::format("redis {} is a node of a cluster: set redis.mode to cluster", from.position()));
}

void SingleRouter::doubt(NodePool& pool) { pool.drop_connections("the server is no primary any more"); }

Result<std::vector<std::shared_ptr<NodePool>>> SingleRouter::primaries(Deadline) {
  return std::vector<std::shared_ptr<NodePool>>{primary_};
}

void SingleRouter::close() {
  if (replica_ != nullptr) replica_->close();
  primary_->close();
}

Result<RespValue> SingleRouter::ask_sentinels(std::string_view commands, Deadline deadline) {
  const RedisConfig& config = context_.config;
  Error last{ErrorCode::unavailable, "no Sentinel is configured"};
  for (size_t i = 0; i < config.endpoints.size(); ++i) {
    // One part is left for the server itself.
    const auto parts = static_cast<int64_t>(config.endpoints.size() - i + 1);
    const Deadline share = Deadline::in_ns(deadline.remaining_ns() / parts);
    auto sentinel = open_connection(context_, config.endpoints[i], {config.sentinel_credentials, 0, false}, share);
    if (!sentinel) {
      last = sentinel.error();
      continue;
    }
    auto answers = ask(context_, **sentinel, commands, 1, share);
    if (answers && answers->front().is_array()) {
      context_.stats.add(Event::topology_refreshes);
      return std::move(answers->front());
    }
    last = answers ? Error{ErrorCode::unavailable, fmt::format("Sentinel {} does not know redis.master_name \"{}\"",
                                                               config.endpoints[i].text(), config.master_name)}
                   : answers.error();
  }
  context_.stats.add(Event::topology_failures);
  return std::unexpected(std::move(last));
}

Result<std::vector<Endpoint>> SingleRouter::locate_primary(Deadline deadline) {
  const RedisConfig& config = context_.config;
  if (config.mode == Mode::standalone) return config.endpoints;
  std::string commands;
  append_command(commands, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", config.master_name});
  auto answer = ask_sentinels(commands, deadline);
  if (!answer) return std::unexpected(answer.error());
  if (answer->items.size() < 2) return fail(ErrorCode::unavailable, "a Sentinel's answer names no address");
  return std::vector<Endpoint>{Endpoint{.host = answer->items[0].text.str(),
                                        .port = port_in(answer->items[1].text.view()),
                                        .tls = config.endpoints.front().tls}};
}

Result<std::vector<Endpoint>> SingleRouter::locate_replicas(Deadline deadline) {
  const RedisConfig& config = context_.config;
  const bool tls = config.endpoints.front().tls;
  std::vector<Endpoint> out;
  std::string commands;
  if (config.mode == Mode::sentinel) {
    append_command(commands, {"SENTINEL", "REPLICAS", config.master_name});
    auto answer = ask_sentinels(commands, deadline);
    if (!answer) return std::unexpected(answer.error());
    for (const RespValue& fields : answer->items) {
      const std::string_view flags = field_of(fields, "flags");
      if (flags.find("down") != std::string_view::npos || flags.find("disconnected") != std::string_view::npos) {
        continue;
      }
      out.push_back(
          {.host = std::string(field_of(fields, "ip")), .port = port_in(field_of(fields, "port")), .tls = tls});
    }
  } else {
    append_command(commands, {"INFO", "replication"});
    auto answers = primary_->run(commands, 1, deadline, true);
    if (!answers) return std::unexpected(answers.error());
    for (int i = 0; i < 16; ++i) {
      const std::string_view line = info_field(answers->front().text.view(), fmt::format("slave{}", i));
      if (part_of(line, "state") != "online") continue;
      out.push_back({.host = std::string(part_of(line, "ip")), .port = port_in(part_of(line, "port")), .tls = tls});
    }
  }
  if (out.empty()) return fail(ErrorCode::unavailable, "redis has no replica that is in step");
  return out;
}

}  // namespace ragfs::redis
