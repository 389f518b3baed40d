// The embedded provider, by the contract of all providers.
#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

ProviderCase embedded_case() {
  return {.name = "embedded",
          .make =
              [] {
                const auto clock = std::make_shared<ManualClock>();
                const EmbeddedConfig config{.dram_bytes = 64 << 20, .max_object_bytes = 4 << 20, .clock = clock.get()};
                return ProviderHarness{.engine = clock,
                                       .provider = EmbeddedProvider::create(config).value(),
                                       .pass_time = [clock](int64_t ms) { clock->advance_ms(ms); }};
              },
          .faults = {}};  // nothing outside this process can fail
}

RAGFS_PROVIDER_CONTRACT(Embedded, embedded_case());

}  // namespace
}  // namespace ragfs::contract
