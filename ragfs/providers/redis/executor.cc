#include "ragfs/providers/redis/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ragfs/providers/redis/resp_command.h"

namespace ragfs::redis {
namespace {

constexpr int kMostRedirects = 6;

const RespValue* first_error(std::span<const RespValue> answers) {
  const auto found = std::ranges::find_if(answers, [](const RespValue& at) { return at.is_error(); });
  return found == answers.end() ? nullptr : &*found;
}

bool redirects(ReplyError kind) {
  return kind == ReplyError::moved || kind == ReplyError::ask || kind == ReplyError::try_again;
}

}  // namespace

Error Executor::refused(NodePool& pool, const RespValue& reply) {
  const ReplyError kind = classify(reply.text.view());
  context_.stats.add(kind);
  switch (kind) {
    case ReplyError::read_only:
    case ReplyError::cluster_down:
    case ReplyError::moved: router_.doubt(pool); break;
    // Logged in no longer: the next connection logs in with what is right by then.
    case ReplyError::no_auth:
    case ReplyError::no_perm: pool.drop_connections("the server refuses this user"); break;
    default: break;
  }
  return error_of_reply(reply.text.view(), pool.position());
}

Result<std::vector<RespValue>> Executor::run(const KeyedCommands& keyed, Deadline deadline) {
  if (keyed.replica_may_answer) {
    if (const auto replica = router_.replica()) {
      auto answers = replica->run(keyed.commands, keyed.replies, deadline, true);
      const RespValue* refused = answers ? first_error(*answers) : nullptr;
      if (answers && refused == nullptr) {
        context_.stats.add(Event::replica_reads);
        return answers;
      }
      if (refused != nullptr) context_.stats.add(classify(refused->text.view()));
    }
  }
  auto pool = router_.owner(keyed.slot, deadline);
  if (!pool) return std::unexpected(pool.error());
  std::string asking;
  for (int redirect = 0;; ++redirect) {
    const std::string_view commands = asking.empty() ? keyed.commands : std::string_view(asking);
    const size_t extra = asking.empty() ? 0 : 1;
    auto answers = (*pool)->run(commands, keyed.replies + extra, deadline, keyed.repeatable);
    if (!answers) {
      if (router_.clustered()) router_.doubt(**pool);
      return answers;
    }
    if (extra == 1) answers->erase(answers->begin());
    const RespValue* error = first_error(*answers);
    if (error == nullptr) return answers;
    const ReplyError kind = classify(error->text.view());
    if (!redirects(kind) || redirect == kMostRedirects || deadline.expired()) {
      return std::unexpected(refused(**pool, *error));
    }
    context_.stats.add(kind);
    asking.clear();
    if (kind == ReplyError::try_again) continue;
    const auto to = parse_redirect(error->text.view());
    if (!to) return std::unexpected(refused(**pool, *error));
    context_.stats.add(Event::redirects_followed);
    pool = router_.redirected(**pool, *to, kind == ReplyError::moved, deadline);
    if (!pool) return std::unexpected(pool.error());
    if (kind == ReplyError::ask) {
      append_command(asking, {"ASKING"});
      asking.append(keyed.commands);
    }
  }
}

std::vector<Result<RespValue>> Executor::run_many(const Batch& batch, Deadline deadline) {
  Results results(batch.count, fail(ErrorCode::internal, "not asked"));
  std::map<std::shared_ptr<NodePool>, std::vector<size_t>> by_server;
  for (size_t i = 0; i < batch.count; ++i) {
    auto pool = router_.owner(batch.slot(i), deadline);
    if (pool) {
      by_server[*pool].push_back(i);
    } else {
      results[i] = std::unexpected(pool.error());
    }
  }
  const auto most_keys = static_cast<size_t>(context_.config.max_batch_keys);
  const auto most_bytes = static_cast<size_t>(context_.config.max_batch_bytes);
  std::string commands;
  for (const auto& [pool, items] : by_server) {
    size_t first = 0;
    while (first < items.size()) {
      commands.clear();
      size_t last = first;
      while (last < items.size() && last - first < most_keys && (last == first || commands.size() < most_bytes)) {
        batch.append(items[last++], commands);
      }
      run_piece(*pool, batch, std::span(items).subspan(first, last - first), commands, results, deadline);
      first = last;
    }
  }
  return results;
}

void Executor::run_piece(NodePool& pool, const Batch& batch, std::span<const size_t> items, const std::string& commands,
                         Results& results, Deadline deadline) {
  std::string all = commands;
  if (batch.close) batch.close(all);
  auto answers = pool.run(all, items.size() + batch.closing, deadline, batch.repeatable);
  Result<void> good = answers ? Result<void>{} : std::unexpected(answers.error());
  if (!answers && router_.clustered()) router_.doubt(pool);
  if (good && batch.closed) good = batch.closed(std::span<const RespValue>(*answers).subspan(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    Result<RespValue>& result = results[items[i]];
    if (!good) {
      result = std::unexpected(good.error());
      continue;
    }
    RespValue& answer = (*answers)[i];
    if (!answer.is_error()) {
      result = std::move(answer);
    } else if (redirects(classify(answer.text.view()))) {
      result = run_alone(batch, items[i], deadline);
    } else {
      result = std::unexpected(refused(pool, answer));
    }
  }
}

Result<RespValue> Executor::run_alone(const Batch& batch, size_t item, Deadline deadline) {
  std::string commands;
  batch.append(item, commands);
  if (batch.close) batch.close(commands);
  auto answers = run(
      {.slot = batch.slot(item), .commands = commands, .replies = 1 + batch.closing, .repeatable = batch.repeatable},
      deadline);
  if (!answers) return std::unexpected(answers.error());
  if (batch.closed) {
    if (auto good = batch.closed(std::span<const RespValue>(*answers).subspan(1)); !good) {
      return std::unexpected(good.error());
    }
  }
  return std::move(answers->front());
}

}  // namespace ragfs::redis
