// BoundClient: the Client behind the Python class, and what of the binding is its own.
//
// Methods take Python objects and convert them by hand, because the original's checks and exceptions are part of the
// interface. The GIL is released around everything that may block. Thread-safety: methods are called with the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "python/client.h"
#include "python/convert.h"

namespace ragfs::python {

class AsyncLocks;

struct BoundClient {
  std::unique_ptr<Client> client;
  std::shared_ptr<AsyncLocks> async_locks;
};

// Runs `call` without the GIL.
template <typename Call>
auto unlocked(const Call& call) {
  const py::gil_scoped_release release;
  return call();
}

using ClientClass = py::class_<BoundClient, std::shared_ptr<BoundClient>>;

void bind_files(ClientClass& type);    // read, write, ls, grep, ...
void bind_batches(ClientClass& type);  // read_many, stat_many, list_with_abstracts, write_context
void bind_mounts(ClientClass& type);   // mount, health, get_stats, metrics, git, ...
void bind_locks(ClientClass& type);    // pathlock_*
std::shared_ptr<AsyncLocks> make_async_locks();
// Ends the threads of all clients; before the interpreter goes.
void stop_async_locks();

}  // namespace ragfs::python
