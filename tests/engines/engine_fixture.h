// Engine hosts of a test's own: the example plug-in, made to fail from outside.
//
// For: tests of the engine provider. Not for: anything else. Thread-safety: none.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/providers/engine/engine_provider.h"
#include "tests/redis/redis_server.h"

namespace ragfs::engine_test {

// A file beside the program that this test is of.
std::string built(std::string_view name);
// A figure of the provider's metrics; -1 when it has none.
double metric(const CacheProvider& provider, std::string_view name);
// Waits until `condition` holds; false after 20 s.
bool eventually(const std::function<bool()>& condition);
// Kills a host's process, or stops it and lets it go on.
void signal_host(const CacheProvider& provider, int signal);

// The example plug-in under a name of its own, so that it can be taken away.
class ExampleEngine {
 public:
  ExampleEngine();
  // Hosts that start from now on find no plug-in.
  void take_away() const;
  void bring_back() const;
  engine::EngineConfig config(bool in_process) const;

 private:
  redis_test::TempDir dir_;
};

}  // namespace ragfs::engine_test
