// Connection: a pipeline to a server that has let us in and has said who it is.
//
// Opening one resolves, connects, shakes hands (TLS), logs in (HELLO 3 with RESP2 and AUTH as the fallback), selects
// the database and asks for the server's identity, all within one deadline: so who answers is known before any answer
// is used. Thread-safety: as Pipeline; the identity is fixed.
#pragma once

#include <atomic>
#include <memory>

#include "ragfs/providers/redis/pipeline.h"
#include "ragfs/providers/redis/redis_config.h"
#include "ragfs/providers/redis/redis_stats.h"
#include "ragfs/providers/redis/server_identity.h"

namespace ragfs::redis {

// What all connections of a provider share. Immutable but for the counters.
struct ClientContext {
  RedisConfig config;
  std::shared_ptr<const TlsContext> tls;  // nullptr without TLS endpoints
  RedisStats stats;
};

struct ConnectOptions {
  Credentials credentials;
  int64_t db = 0;
  bool identify = true;  // false: for Sentinels, which hold no data
};

struct Connection {
  explicit Connection(std::unique_ptr<Transport> transport) : pipeline(std::move(transport)) {}
  Pipeline pipeline;
  ServerIdentity identity;
  std::atomic<int64_t> verified_ns{0};  // when the identity was last told
  std::atomic<int64_t> used_ns{0};
};

// Errors: timeout, unavailable; messages name server and step. Reply errors are counted in the context's stats.
Result<std::shared_ptr<Connection>> open_connection(ClientContext& context, const Endpoint& endpoint,
                                                    const ConnectOptions& options, Deadline deadline);

// `commands` alone on a connection, each reply checked to be no error. Errors: those of Pipeline::run, of the replies.
Result<std::vector<RespValue>> ask(ClientContext& context, Connection& connection, std::string_view commands,
                                   size_t replies, Deadline deadline);

}  // namespace ragfs::redis
