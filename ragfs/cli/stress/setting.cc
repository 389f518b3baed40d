#include "ragfs/cli/stress/setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/providers/embedded/embedded_provider.h"
#include "ragfs/providers/scripted/scripted_provider.h"

namespace ragfs::stress {
namespace {

// Times of files lie this far back, so that an object is old enough to be trusted by its version ("racy timestamps").
constexpr int64_t kAgeNs = 10'000'000'000;

class EarlierClock final : public Clock {
 public:
  int64_t monotonic_ns() const override { return Clock::system().monotonic_ns(); }
  int64_t wall_ns() const override { return Clock::system().wall_ns() - kAgeNs; }
};

const Clock& earlier_clock() {
  static const EarlierClock clock;
  return clock;
}

Result<std::shared_ptr<FileSystem>> open_memory() {
  Result<std::unique_ptr<MemFileSystem>> opened = MemFileSystem::open({}, earlier_clock());
  if (!opened) return std::unexpected(std::move(opened.error()));
  return std::shared_ptr<FileSystem>(*std::move(opened));
}

Result<std::shared_ptr<CacheProvider>> scripted() { return std::make_shared<ScriptedProvider>(); }

// Small enough that objects are evicted all the time.
Result<std::shared_ptr<CacheProvider>> small_embedded() {
  EmbeddedConfig config;
  config.dram_bytes = uint64_t{1} << 20;
  config.max_objects = 500;
  Result<std::unique_ptr<EmbeddedProvider>> made = EmbeddedProvider::create(config);
  if (!made) return std::unexpected(std::move(made.error()));
  return std::shared_ptr<CacheProvider>(*std::move(made));
}

// The same over a disk that takes all that is evicted, in a directory of its own: whatever is read comes now from
// memory, now from the queue, now from the disk.
Result<std::shared_ptr<CacheProvider>> small_embedded_over_disk() {
  std::string name = (std::filesystem::temp_directory_path() / "ragfs_stress_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return fail(ErrorCode::io, name + " cannot be made");
  EmbeddedConfig config;
  config.dram_bytes = uint64_t{1} << 20;
  config.max_objects = 64;
  config.disk = SecondTierConfig{
      .disks = {{.directory = name, .capacity_bytes = 2 << 20, .bucket_bytes = 256 << 10, .min_free_bytes = 0}},
      .admit_all = true,
      .promote_hits = 1,
      .flush_ms = 3};
  Result<std::unique_ptr<EmbeddedProvider>> made = EmbeddedProvider::create(config);
  if (!made) return std::unexpected(std::move(made.error()));
  return std::shared_ptr<CacheProvider>(made->release(), [name](CacheProvider* provider) {
    std::unique_ptr<CacheProvider>(provider).reset();
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  });
}

Result<std::shared_ptr<CacheProvider>> near_memory(uint64_t bytes) {
  if (bytes == 0) return std::shared_ptr<CacheProvider>();
  EmbeddedConfig config;
  config.dram_bytes = bytes;
  Result<std::unique_ptr<EmbeddedProvider>> made = EmbeddedProvider::create(config);
  if (!made) return std::unexpected(std::move(made.error()));
  return std::shared_ptr<CacheProvider>(*std::move(made));
}

// A key-value server: nothing but get, put and erase.
void remote_like(ProviderCapabilities& capabilities) {
  capabilities.zero_copy = false;
  capabilities.enumerates = false;
  capabilities.batch_get = false;
  capabilities.batch_put = false;
  capabilities.atomic_put = 0;
}

constexpr ProviderFaults kProviderFaults{
    .fail = 15'000, .lose_call = 10'000, .lose_answer = 10'000, .land_late = 15'000, .slow = 1'000};
constexpr BackendFaults kBackendFaults{.read_error = 3'000,
                                       .fail_before = 10'000,
                                       .fail_after = 10'000,
                                       .time_out_lost = 500,
                                       .time_out_late = 2'000,
                                       .slow = 1'000};

StressSetting base(std::string name) {
  StressSetting setting;
  setting.name = std::move(name);
  setting.provider = scripted;
  setting.provider_faults = kProviderFaults;
  setting.backend_faults = kBackendFaults;
  setting.domain.guard.failures_to_open = 1'000'000;  // faults reach the protocol instead of opening the breaker
  setting.domain.retry_first_ms = 1;
  setting.domain.retry_most_ms = 20;
  return setting;
}

void add_remote_settings(std::vector<StressSetting>& settings) {
  StressSetting remote = base("remote-like");
  remote.limit = remote_like;
  remote.domain.default_ttl_ms = 300;
  settings.push_back(remote);

  StressSetting near = base("near-tier");
  near.limit = remote_like;
  near.near_bytes = uint64_t{64} << 20;
  settings.push_back(near);

  // Objects come and go in both places; a look-up finds what it wants now here, now there.
  StressSetting small_near = remote;
  small_near.name = "small-near-tier";
  small_near.near_bytes = uint64_t{1} << 20;
  small_near.mount.revalidate_ms = 20;
  settings.push_back(small_near);

  StressSetting resurrecting = base("resurrecting");
  resurrecting.limit = [](ProviderCapabilities& capabilities) {
    remote_like(capabilities);
    capabilities.may_resurrect = true;
  };
  resurrecting.provider_faults.resurrect = 20'000;
  resurrecting.domain.default_ttl_ms = 500;
  settings.push_back(resurrecting);
}

std::vector<StressSetting> make_settings() {
  std::vector<StressSetting> settings;

  StressSetting embedded = base("embedded");
  embedded.provider = small_embedded;
  embedded.provider_faults = {};
  embedded.domain.sweep_interval_ms = 50;
  settings.push_back(embedded);

  StressSetting disk = embedded;
  disk.name = "embedded-disk";
  disk.provider = small_embedded_over_disk;
  settings.push_back(disk);

  StressSetting quiet = base("in-process-quiet");
  quiet.provider_faults = {.slow = 2'000};
  quiet.backend_faults = {.slow = 2'000};
  settings.push_back(quiet);

  settings.push_back(base("in-process-faulty"));

  add_remote_settings(settings);

  // Everything is read ahead that can be, while directories are renamed and removed.
  StressSetting ahead = base("prefetching");
  ahead.provider = small_embedded;
  ahead.domain.prefetch.enabled = true;
  ahead.domain.prefetch.cooldown_ms = 1;
  ahead.domain.prefetch.busy_reads_per_second = 0;  // these readers are always busy
  settings.push_back(ahead);
  StressSetting far_ahead = ahead;
  far_ahead.name = "prefetching-near-tier";
  far_ahead.provider = scripted;
  far_ahead.limit = remote_like;
  far_ahead.near_bytes = uint64_t{1} << 20;
  settings.push_back(far_ahead);

  StressSetting negative = base("negative-entries");
  negative.mount.policy.negative_ttl_ms = 1'000;
  negative.mount.policy.negative_names.clear();
  for (int i = 2; i < 20; ++i) negative.mount.policy.negative_names.push_back(fmt::format("f{}.md", i));
  negative.mount.policy.negative_names.emplace_back(".abstract.md");
  negative.workload.mutations_per_mille = 400;
  settings.push_back(negative);

  StressSetting revalidating = base("revalidating");
  revalidating.mount.revalidate_ms = 1;
  settings.push_back(revalidating);

  StressSetting small = base("small-tables");
  small.domain.table = {.max_path_records = 64, .max_subtree_records = 16, .max_marked_keys = 48};
  small.domain.max_fills = 4;
  small.domain.max_direct_reads = 2;
  small.domain.inflight.max_flights = 3;
  small.domain.max_pending = 32;
  small.domain.sweep_interval_ms = 20;
  small.domain.sweep_records = 8;
  settings.push_back(small);

  StressSetting two = base("two-mounts-strict");
  two.workload.mounts = 2;
  two.domain.failure_mode = FailureMode::strict;
  two.domain.guard.failures_to_open = 50;
  two.domain.guard.first_pause_ms = 1;
  two.domain.guard.max_pause_ms = 5;
  settings.push_back(two);
  return settings;
}

}  // namespace

const std::vector<StressSetting>& standard_settings() {
  static const std::vector<StressSetting> settings = make_settings();
  return settings;
}

Result<StressSetting> find_setting(std::string_view name) {
  std::vector<std::string> names;
  for (const StressSetting& setting : standard_settings()) {
    if (setting.name == name) return setting;
    names.push_back(setting.name);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("--setting '{}' is not known; there are {}", name, fmt::join(names, ", ")));
}

StressSetting setting_over(std::shared_ptr<CacheProvider> engine) {
  StressSetting setting = base(std::string(engine->name()));
  if (!engine->capabilities().zero_copy) setting.near_bytes = uint64_t{1} << 20;
  if (engine->capabilities().zero_copy) setting.provider_faults = {};  // it cannot hang, so it is not made to
  setting.provider = [engine = std::move(engine)]() -> Result<std::shared_ptr<CacheProvider>> { return engine; };
  return setting;
}

Stack::~Stack() {
  // The cache first: its background thread uses the provider, its callers the backend.
  mounts_.clear();
  if (life_) life_->stop_thread();
  domain_.reset();
  life_.reset();
  std::error_code ignored;
  if (!state_dir_.empty()) std::filesystem::remove_all(state_dir_, ignored);
}

Result<DomainStart> Stack::begin_life(const StressSetting& setting) {
  DomainStart start;
  if (setting.life) {
    std::string name = (std::filesystem::temp_directory_path() / "ragfs_stress_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return fail(ErrorCode::io, name + " cannot be made");
    state_dir_ = name;
    LifeConfig config;
    config.name_space = setting.domain.name_space;
    config.state_dir = state_dir_;
    config.pointer_check_ms = 500;
    config.call_timeout_ms = 200;
    config.retry_ms = 50;
    life_ = std::make_unique<Life>(std::move(config), provider_);
    start = life_->start();
  }
  Result<std::shared_ptr<CacheProvider>> near = near_memory(setting.near_bytes);
  if (!near) return std::unexpected(std::move(near.error()));
  start.near = *std::move(near);
  return start;
}

Result<std::unique_ptr<Stack>> Stack::build(const StressSetting& setting, uint64_t seed) {
  if (auto valid = setting.workload.validate(); !valid) return std::unexpected(valid.error());
  if (auto valid = setting.domain.validate(); !valid) return std::unexpected(valid.error());
  if (auto valid = setting.mount.validate(); !valid) return std::unexpected(valid.error());
  auto stack = std::unique_ptr<Stack>(new Stack());
  stack->layout_ = std::make_unique<Layout>(setting.workload, stack->oracle_);
  Result<std::shared_ptr<FileSystem>> backend = setting.backend ? setting.backend() : open_memory();
  if (!backend) return std::unexpected(std::move(backend.error()));
  Result<std::shared_ptr<CacheProvider>> provider = setting.provider();
  if (!provider) return std::unexpected(std::move(provider.error()));

  const Context ctx;
  const auto seed_file = [&](size_t index) -> Result<void> {
    const Path& path = stack->oracle_.path(index);
    if (auto made = (*backend)->ensure_parent_dirs(ctx, path, kDefaultDirMode); !made) return made;
    const auto written = (*backend)->write(ctx, path, content_of(path.text(), index), 0, WriteFlag::create);
    return written ? Result<void>{} : std::unexpected(written.error());
  };
  for (const std::vector<size_t>* files : {&stack->layout_->hot_files(), &stack->layout_->cold_files()}) {
    for (const size_t index : *files) {
      if (auto made = seed_file(index); !made) return std::unexpected(made.error());
    }
  }
  ProviderCapabilities capabilities = (*provider)->capabilities();
  if (setting.limit) setting.limit(capabilities);
  stack->watched_ = std::make_shared<WatchedFileSystem>(*std::move(backend), stack->oracle_, setting.backend_faults,
                                                        mix64(seed ^ 0xb));
  stack->watched_->observe_all();
  stack->provider_ =
      std::make_shared<FaultyProvider>(*std::move(provider), setting.provider_faults, capabilities, mix64(seed ^ 0xf));
  Result<DomainStart> start = stack->begin_life(setting);
  if (!start) return std::unexpected(std::move(start.error()));
  stack->domain_ = std::make_shared<CoherenceDomain>(setting.domain, stack->provider_, Clock::system(), *start);
  for (uint32_t i = 0; i < setting.workload.mounts; ++i) {
    stack->mounts_.push_back(std::make_shared<CachedFileSystem>(stack->watched_, stack->domain_, setting.mount));
  }
  if (stack->life_) stack->life_->attach(*stack->domain_);
  return stack;
}

std::vector<FileSystem*> Stack::mounts() const {
  std::vector<FileSystem*> mounts;
  for (const auto& mount : mounts_) mounts.push_back(mount.get());
  return mounts;
}

uint64_t Stack::count(CacheCounter counter) const {
  uint64_t sum = domain_->counters().read(counter);
  for (const auto& mount : mounts_) sum += mount->count(counter);
  return sum;
}

void Stack::calm() {
  watched_->set_faults(false);
  watched_->stop_late_calls();
  provider_->set_faults(false);
}

}  // namespace ragfs::stress
