// ServerIdentity: who answers on a connection, as far as it matters for what was acknowledged before.
//
// For: noticing that acknowledged writes may be gone: another process, another role, another replication history.
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ragfs/providers/redis/resp_value.h"

namespace ragfs::redis {

struct ServerIdentity {
  bool known = false;  // run_id and role were told; else every connection counts as another server
  bool primary = false;
  std::string run_id;
  std::string role;
  std::string replication_id;
  std::string version;
  uint64_t evicted_keys = 0;
  uint64_t expired_keys = 0;

  // Equal for the same server in the same role with the same history.
  std::string text() const;
};

// The commands that ask, and how many replies they get.
std::string_view identity_commands();
inline constexpr size_t kIdentityReplies = 4;

// Of the replies to them. Replies may be errors (an ACL): then `known` is false.
ServerIdentity identity_in(std::span<const RespValue> replies);

// The value of `name` in the text of INFO ("run_id:abc"); "" when it is not there.
std::string_view info_field(std::string_view info, std::string_view name);

}  // namespace ragfs::redis
