// The embedded provider with a disk behind a memory that is far too small, by the contract of all providers.
#include <filesystem>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/contract/provider_contract.h"

namespace ragfs::contract {
namespace {

struct Engine {
  Engine() {
    std::string name = testing::TempDir() + "disk_contract_XXXXXX";
    directory = ::mkdtemp(name.data());
  }
  ~Engine() { std::filesystem::remove_all(directory); }
  ManualClock clock;
  std::string directory;
};

ProviderCase disk_case() {
  return {.name = "embedded_disk",
          .make =
              [] {
                const auto engine = std::make_shared<Engine>();
                EmbeddedConfig config{.dram_bytes = 64 << 20, .max_object_bytes = 4 << 20, .clock = &engine->clock};
                config.max_objects = 16;
                config.disk = SecondTierConfig{.disks = {{.directory = engine->directory,
                                                          .capacity_bytes = uint64_t{256} << 20,
                                                          .bucket_bytes = 8 << 20,
                                                          .min_free_bytes = 0}},
                                               .admit_all = true,
                                               .flush_ms = 1};
                return ProviderHarness{.engine = engine,
                                       .provider = EmbeddedProvider::create(config).value(),
                                       .pass_time = [engine](int64_t ms) { engine->clock.advance_ms(ms); }};
              },
          .faults = {},
          .misses_percent = 1};
}

RAGFS_PROVIDER_CONTRACT(EmbeddedDisk, disk_case());

}  // namespace
}  // namespace ragfs::contract
