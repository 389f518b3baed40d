// The disabled provider stores nothing, so of the contract it keeps what the cache above needs: it never changes an
// answer. Its calls are tested beside its source.
#include "ragfs/providers/disabled/disabled_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

ProviderCase disabled_case() {
  return {.name = "disabled",
          .make = [] { return ProviderHarness{.provider = std::make_shared<DisabledProvider>("by a test")}; }};
}

INSTANTIATE_TEST_SUITE_P(Disabled, ProviderUnderTheCache, ::testing::Values(disabled_case()), case_name);

}  // namespace
}  // namespace ragfs::contract
