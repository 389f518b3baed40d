// The scripted provider keeps the contract while no rule says otherwise, with every ability and with none: what tests
// build on it holds for an engine.
#include "ragfs/providers/scripted/scripted_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

void script(ScriptedProvider& provider, EngineFault fault) {
  provider.clear_rules();
  provider.set_down(fault == EngineFault::gone);
  if (fault == EngineFault::hangs) provider.add_rule({.delay_ms = 600'000});
  if (fault == EngineFault::breaks) {
    provider.add_rule({.action = scripted::Action::fail, .code = ErrorCode::internal});
  }
}

// What is in-process (zero_copy) is called without a deadline: it must not hang, so it does not here.
ProviderCase scripted_case(std::string name, const ProviderCapabilities& capabilities) {
  return {.name = std::move(name),
          .make =
              [capabilities] {
                const auto clock = std::make_shared<ManualClock>();
                const auto provider = std::make_shared<ScriptedProvider>(*clock);
                provider->set_capabilities(capabilities);
                return ProviderHarness{.engine = clock,
                                       .provider = provider,
                                       .pass_time = [clock](int64_t ms) { clock->advance_ms(ms); },
                                       .set_fault = [provider](EngineFault fault) { script(*provider, fault); }};
              },
          .faults = capabilities.zero_copy ? std::vector{EngineFault::gone, EngineFault::breaks}
                                           : std::vector{EngineFault::gone, EngineFault::hangs, EngineFault::breaks}};
}

ProviderCase all_abilities() {
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.max_value_bytes = 2 << 20;
  return scripted_case("all_abilities", capabilities);
}
ProviderCase like_a_remote_engine() {
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.zero_copy = false;
  capabilities.enumerates = false;
  capabilities.may_resurrect = true;
  return scripted_case("like_a_remote_engine", capabilities);
}
ProviderCase no_abilities() {
  ProviderCapabilities capabilities;
  capabilities.max_value_bytes = 2 << 20;
  return scripted_case("no_abilities", capabilities);
}

RAGFS_PROVIDER_CONTRACT(Scripted, all_abilities());
RAGFS_PROVIDER_CONTRACT(ScriptedRemote, like_a_remote_engine());
RAGFS_PROVIDER_CONTRACT(ScriptedBare, no_abilities());

}  // namespace
}  // namespace ragfs::contract
