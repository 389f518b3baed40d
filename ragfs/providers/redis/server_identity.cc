#include "ragfs/providers/redis/server_identity.h"

#include <fmt/format.h>

#include <charconv>

#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

uint64_t number_of(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string ServerIdentity::text() const { return fmt::format("{}/{}/{}", run_id, role, replication_id); }

std::string_view identity_commands() {
  static const std::string commands = [] {
    std::string out;
    append_command(out, {"ROLE"});
    append_command(out, {"INFO", "server"});
    append_command(out, {"INFO", "replication"});
    append_command(out, {"INFO", "stats"});
    return out;
  }();
  return commands;
}

std::string_view info_field(std::string_view info, std::string_view name) {
  size_t at = 0;
  while (at < info.size()) {
    const size_t end = std::min(info.find('\n', at), info.size());
    std::string_view line = info.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    at = end + 1;
  }
  return {};
}

ServerIdentity identity_in(std::span<const RespValue> replies) {
  ServerIdentity out;
  if (replies.size() < kIdentityReplies) return out;
  const auto text_of = [&](size_t i) {
    return replies[i].type == RespType::text ? replies[i].text.view() : std::string_view();
  };
  const std::string_view replication = text_of(2);
  out.run_id = info_field(text_of(1), "run_id");
  out.version = info_field(text_of(1), "redis_version");
  out.role = info_field(replication, "role");
  out.replication_id = info_field(replication, "master_replid");
  const std::string_view role =
      replies[0].is_array() && !replies[0].items.empty() ? replies[0].items[0].text.view() : std::string_view();
  if (out.role != role) out.run_id.clear();  // refused, or it changed between the two: not known
  if (!role.empty()) out.role = role;
  out.primary = out.role == "master";
  out.known = !out.run_id.empty() && !out.role.empty();
  out.evicted_keys = number_of(info_field(text_of(3), "evicted_keys"));
  out.expired_keys = number_of(info_field(text_of(3), "expired_keys"));
  return out;
}

}  // namespace ragfs::redis
