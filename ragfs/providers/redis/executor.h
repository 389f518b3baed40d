// Executor: commands to whoever has their key, redirects followed.
//
// An error reply that says "somebody else" (MOVED, ASK) or "not now" (TRYAGAIN) means that the server did nothing, so
// the commands may go elsewhere, writes too, a few times. A connection that was lost means that it may have done it:
// then only what is repeatable is sent again.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ragfs/providers/redis/router.h"

namespace ragfs::redis {

// Commands about one key.
struct KeyedCommands {
  uint16_t slot = 0;
  std::string_view commands;
  size_t replies = 1;
  bool repeatable = false;
  bool replica_may_answer = false;
};

class Executor {
 public:
  Executor(ClientContext& context, Router& router) : context_(context), router_(router) {}

  // The replies; none of them an error. Errors: as NodePool::run, and those of error replies.
  Result<std::vector<RespValue>> run(const KeyedCommands& keyed, Deadline deadline);

  // Many at once: pipelines by server, in pieces within the configured keys and bytes. `append(i, out)` writes the one
  // command of item i; `slot(i)` says where it belongs. One reply an item, in their order. `close(out)` may append
  // commands behind each piece (`closing` replies), which `closed` judges; its error is that of all items of the piece.
  struct Batch {
    size_t count = 0;
    std::function<uint16_t(size_t)> slot;
    std::function<void(size_t, std::string&)> append;
    std::function<void(std::string&)> close;
    size_t closing = 0;
    std::function<Result<void>(std::span<const RespValue>)> closed;
    bool repeatable = false;
  };
  std::vector<Result<RespValue>> run_many(const Batch& batch, Deadline deadline);

  // Counts an error reply of `pool` and does what it asks for.
  Error refused(NodePool& pool, const RespValue& reply);

 private:
  using Results = std::vector<Result<RespValue>>;
  void run_piece(NodePool& pool, const Batch& batch, std::span<const size_t> items, const std::string& commands,
                 Results& results, Deadline deadline);
  // The same item on its own, redirects followed.
  Result<RespValue> run_alone(const Batch& batch, size_t item, Deadline deadline);

  ClientContext& context_;
  Router& router_;
};

}  // namespace ragfs::redis
