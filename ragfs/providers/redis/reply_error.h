// What an error reply of a Redis server means: told apart, so that each gets its own counter and its own reaction.
//
// For: turning "-MOVED 3999 127.0.0.1:6381" into something to act on. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs::redis {

enum class ReplyError : uint8_t {
  moved,         // another node owns the slot
  ask,           // another node has this key, for now
  try_again,     // the keys of one command are on both sides of a migration
  cluster_down,  // no node owns the slot
  cross_slot,
  loading,        // the server reads its data from disk
  master_down,    // a replica without its primary
  read_only,      // the server is a replica now: find the primary
  busy,           // a script runs
  no_auth,        // a password is needed
  wrong_pass,     // user or password are wrong
  no_perm,        // the ACL refuses the command or key
  oom,            // maxmemory reached and nothing may be evicted
  misconfigured,  // the server cannot persist and refuses writes, or too few replicas
  max_clients,
  unknown_command,
  other,
};
inline constexpr size_t kReplyErrorCount = static_cast<size_t>(ReplyError::other) + 1;

// "moved": for metrics.
std::string_view reply_error_name(ReplyError kind);
ReplyError classify(std::string_view text);

struct Redirect {
  uint16_t slot = 0;
  std::string host;  // "" = the node that answered
  uint16_t port = 0;
};
// Of MOVED and ASK; nothing when the text is neither.
std::optional<Redirect> parse_redirect(std::string_view text);

// What a caller of the provider sees. `server` is the address.
Error error_of_reply(std::string_view text, std::string_view server);

}  // namespace ragfs::redis
