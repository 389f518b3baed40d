// resolve: a host name to addresses, within a deadline.
//
// For: connecting. The C library's look-up cannot be interrupted, so a name (not an address) is looked up on a thread
// of its own that is left behind when the deadline passes; at most a few are under way in a process, beyond that a
// look-up fails at once. Thread-safety: may be called from any thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"

namespace ragfs::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// Errors: unavailable (the name is not known), timeout.
Result<std::vector<SocketAddress>> resolve(const std::string& host, uint16_t port, Deadline deadline);

}  // namespace ragfs::redis
