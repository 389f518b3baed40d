#include "ragfs/providers/redis/connection.h"

#include <fmt/format.h>

#include "ragfs/base/clock.h"
#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

// Errors that another way of logging in would meet again.
bool final_refusal(ReplyError kind) {
  return kind == ReplyError::no_auth || kind == ReplyError::wrong_pass || kind == ReplyError::max_clients;
}

Result<void> log_in(ClientContext& context, Connection& connection, const Credentials& credentials, Deadline deadline) {
  std::string hello;
  if (credentials.password.empty()) {
    append_command(hello, {"HELLO", "3"});
  } else {
    append_command(hello, {"HELLO", "3", "AUTH", credentials.username.empty() ? "default" : credentials.username,
                           credentials.password});
  }
  Exchange greeting(hello, 1, deadline);
  if (auto done = connection.pipeline.run(greeting); !done) return done;
  const RespValue& answer = greeting.answers[0];
  if (!answer.is_error()) return {};
  const ReplyError kind = classify(answer.text.view());
  if (final_refusal(kind)) {
    context.stats.add(kind);
    return std::unexpected(error_of_reply(answer.text.view(), connection.pipeline.server()));
  }
  // A server before 6.0, or a proxy: RESP2 it is.
  if (credentials.password.empty()) return {};
  std::string auth;
  if (credentials.username.empty()) {
    append_command(auth, {"AUTH", credentials.password});
  } else {
    append_command(auth, {"AUTH", credentials.username, credentials.password});
  }
  auto done = ask(context, connection, auth, 1, deadline);
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<void> identify(Connection& connection, Deadline deadline) {
  Exchange exchange(identity_commands(), kIdentityReplies, deadline);
  if (auto done = connection.pipeline.run(exchange); !done) return done;
  connection.identity = identity_in(exchange.answers);
  return {};
}

}  // namespace

Result<std::vector<RespValue>> ask(ClientContext& context, Connection& connection, std::string_view commands,
                                   size_t replies, Deadline deadline) {
  Exchange exchange(commands, replies, deadline);
  if (auto done = connection.pipeline.run(exchange); !done) return std::unexpected(done.error());
  for (const RespValue& answer : exchange.answers) {
    if (!answer.is_error()) continue;
    context.stats.add(classify(answer.text.view()));
    return std::unexpected(error_of_reply(answer.text.view(), connection.pipeline.server()));
  }
  return std::move(exchange.answers);
}

namespace {

Result<std::shared_ptr<Connection>> connect_and_log_in(ClientContext& context, const Endpoint& endpoint,
                                                       const ConnectOptions& options, Deadline deadline) {
  auto transport = Transport::connect(endpoint, context.tls, deadline);
  if (!transport) return std::unexpected(transport.error());
  auto connection = std::make_shared<Connection>(std::move(*transport));
  if (auto done = log_in(context, *connection, options.credentials, deadline); !done) {
    return std::unexpected(done.error());
  }
  if (options.db != 0) {
    std::string select;
    append_command(select, {"SELECT", fmt::format("{}", options.db)});
    if (auto done = ask(context, *connection, select, 1, deadline); !done) return std::unexpected(done.error());
  }
  if (options.identify) {
    if (auto done = identify(*connection, deadline); !done) return std::unexpected(done.error());
    // Without a password the first commands are refused one by one; who we are is then nobody.
    if (!connection->identity.known) {
      std::string ping;
      append_command(ping, {"PING"});
      if (auto done = ask(context, *connection, ping, 1, deadline); !done && done.error().code != ErrorCode::internal) {
        return std::unexpected(done.error());
      }
    }
    const ServerIdentity& identity = connection->identity;
    context.stats.server_reports(identity.run_id, identity.evicted_keys, identity.expired_keys);
  }
  const int64_t now_ns = Clock::system().monotonic_ns();
  connection->verified_ns.store(now_ns);
  connection->used_ns.store(now_ns);
  return connection;
}

}  // namespace

Result<std::shared_ptr<Connection>> open_connection(ClientContext& context, const Endpoint& endpoint,
                                                    const ConnectOptions& options, Deadline deadline) {
  auto opened = connect_and_log_in(context, endpoint, options, deadline);
  if (opened || opened.error().code != ErrorCode::invalid_data) return opened;
  // Not one bad answer of an engine that works: there is no engine.
  return fail(ErrorCode::unavailable, opened.error().message + " (is a Redis server there?)");
}

}  // namespace ragfs::redis
