// The engine provider over the example plug-in, by the contract of all providers, in both isolation modes.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/contract/provider_contract.h"
#include "tests/engines/engine_fixture.h"

namespace ragfs::contract {
namespace {

using engine_test::ExampleEngine;

ProviderHarness harness_over(bool in_process) {
  const auto example = std::make_shared<ExampleEngine>();
  const std::shared_ptr<CacheProvider> provider = engine::EngineProvider::create(example->config(in_process)).value();
  return {.engine = example,
          .provider = provider,
          // The engine's own clock is what counts.
          .pass_time = [](int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); },
          .set_fault =
              [example, provider](EngineFault fault) {
                engine_test::signal_host(*provider, SIGCONT);
                example->bring_back();
                if (fault == EngineFault::hangs) engine_test::signal_host(*provider, SIGSTOP);
                if (fault != EngineFault::gone) return;
                example->take_away();
                const double starts = engine_test::metric(*provider, "host_failures_total");
                engine_test::signal_host(*provider, SIGKILL);
                engine_test::eventually([&] { return engine_test::metric(*provider, "host_failures_total") > starts; });
              }};
}

ProviderCase example(std::string name, bool in_process) {
  return {.name = std::move(name),
          .make = [in_process] { return harness_over(in_process); },
          .faults =
              in_process ? std::vector<EngineFault>{} : std::vector<EngineFault>{EngineFault::gone, EngineFault::hangs},
          .ttl_ms = 100,
          .atomic_puts_are_missed = true};
}

RAGFS_PROVIDER_CONTRACT(EngineHost, example("engine_host", false));
RAGFS_PROVIDER_CONTRACT(EngineInProcess, example("engine_in_process", true));

}  // namespace
}  // namespace ragfs::contract
