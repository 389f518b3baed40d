#include "ragfs/providers/redis/reply_error.h"

#include <fmt/format.h>

#include <charconv>

namespace ragfs::redis {
namespace {

struct Kind {
  std::string_view prefix;
  ReplyError kind;
  std::string_view name;
  ErrorCode code;
  std::string_view advice;
};

constexpr Kind kKinds[] = {
    {"MOVED ", ReplyError::moved, "moved", ErrorCode::unavailable, "the slot has another owner"},
    {"ASK ", ReplyError::ask, "ask", ErrorCode::unavailable, "the key is being moved"},
    {"TRYAGAIN", ReplyError::try_again, "tryagain", ErrorCode::unavailable, "the slot is being moved"},
    {"CLUSTERDOWN", ReplyError::cluster_down, "clusterdown", ErrorCode::unavailable, "check `redis-cli cluster info`"},
    {"CROSSSLOT", ReplyError::cross_slot, "crossslot", ErrorCode::invalid_argument,
     "keys of one command must share a slot"},
    {"LOADING", ReplyError::loading, "loading", ErrorCode::unavailable, "the server is reading its data from disk"},
    {"MASTERDOWN", ReplyError::master_down, "masterdown", ErrorCode::unavailable, "the replica has lost its primary"},
    {"READONLY", ReplyError::read_only, "readonly", ErrorCode::unavailable, "the server is a replica"},
    {"BUSY", ReplyError::busy, "busy", ErrorCode::unavailable, "a script blocks the server"},
    {"NOAUTH", ReplyError::no_auth, "noauth", ErrorCode::unavailable, "set redis.password_env or redis.password_file"},
    {"WRONGPASS", ReplyError::wrong_pass, "wrongpass", ErrorCode::unavailable,
     "check redis.username and the password in its variable or file"},
    {"NOPERM", ReplyError::no_perm, "noperm", ErrorCode::unavailable,
     "the ACL of redis.username must allow this; docs/redis.md has the rule"},
    {"OOM", ReplyError::oom, "oom", ErrorCode::full, "maxmemory is reached; set an allkeys-* maxmemory-policy"},
    {"MISCONF", ReplyError::misconfigured, "misconf", ErrorCode::unavailable, "the server cannot save to its disk"},
    {"NOREPLICAS", ReplyError::misconfigured, "misconf", ErrorCode::unavailable, "too few replicas are connected"},
    {"ERR max number of clients", ReplyError::max_clients, "maxclients", ErrorCode::unavailable,
     "raise maxclients or lower redis.pool_size"},
    {"ERR unknown command", ReplyError::unknown_command, "unknown_command", ErrorCode::internal, ""},
    {"ERR unknown subcommand", ReplyError::unknown_command, "unknown_command", ErrorCode::internal, ""},
};
constexpr Kind kOther{"", ReplyError::other, "other", ErrorCode::internal, ""};
// Before ACLs (Redis 5), a wrong password had no prefix of its own.
constexpr std::string_view kOldWrongPass[] = {"ERR invalid password", "ERR Client sent AUTH, but no password is set"};

const Kind& kind_of(std::string_view text) {
  for (const Kind& kind : kKinds) {
    if (text.starts_with(kind.prefix)) return kind;
  }
  for (const std::string_view old : kOldWrongPass) {
    if (text.starts_with(old)) return kind_of("WRONGPASS");
  }
  return kOther;
}

std::optional<uint16_t> number_in(std::string_view text) {
  uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view reply_error_name(ReplyError kind) {
  for (const Kind& known : kKinds) {
    if (known.kind == kind) return known.name;
  }
  return kOther.name;
}

ReplyError classify(std::string_view text) { return kind_of(text).kind; }

std::optional<Redirect> parse_redirect(std::string_view text) {
  const ReplyError kind = classify(text);
  if (kind != ReplyError::moved && kind != ReplyError::ask) return std::nullopt;
  text.remove_prefix(text.find(' ') + 1);
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view address = text.substr(space + 1);
  const size_t colon = address.rfind(':');  // an IPv6 address has some of its own
  if (colon == std::string_view::npos) return std::nullopt;
  const auto slot = number_in(text.substr(0, space));
  const auto port = number_in(address.substr(colon + 1));
  if (!slot || !port) return std::nullopt;
  return Redirect{*slot, std::string(address.substr(0, colon)), *port};
}

Error error_of_reply(std::string_view text, std::string_view server) {
  constexpr size_t kMostShown = 200;
  const Kind& kind = kind_of(text);
  std::string message = fmt::format("redis {} answers: {}", server, text.substr(0, kMostShown));
  if (!kind.advice.empty()) message += fmt::format(" ({})", kind.advice);
  return {kind.code, std::move(message)};
}

}  // namespace ragfs::redis
