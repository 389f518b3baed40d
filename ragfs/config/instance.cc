#include "ragfs/config/instance.h"

#include <fmt/format.h>

#include <filesystem>

#include "ragfs/config/factories.h"
#include "ragfs/fs/agfs_view.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/path_lock_file_system.h"
#include "ragfs/fs/stats_file_system.h"

namespace ragfs {
namespace {

// True when one directory lies in the other, and they are not the same one.
bool overlap(const std::string& a, const std::string& b) {
  const auto below = [](const std::string& outer, const std::string& inner) {
    return inner.size() > outer.size() && inner.starts_with(outer) && (outer == "/" || inner[outer.size()] == '/');
  };
  return below(a, b) || below(b, a);
}

std::string real_directory(const MountConfig& mount) {
  std::error_code error;
  const auto real = std::filesystem::canonical(mount.local_dir, error);
  return error ? mount.local_dir : real.string();
}

std::unexpected<Error> no_cache() { return fail(ErrorCode::not_supported, "there is no cache in this configuration"); }

}  // namespace

struct Instance::Parts {
  Config config;
  std::vector<std::string> warnings;
  std::unique_ptr<CacheLayer> cache;  // nullptr without a cache
  std::vector<MountStatus> mounts;
  std::shared_ptr<MountTable> table = std::make_shared<MountTable>();
  std::shared_ptr<PathLocks> locks;
  std::shared_ptr<FileSystem> top;
  bool closed = false;

  // Two mounts that show one directory through different roots would cache it under two identities.
  bool may_cache(size_t index);
  Result<void> open_mount(size_t index);
  // Statistics and path locks around the tree of mounts.
  Result<void> build_top();
};

bool Instance::Parts::may_cache(size_t index) {
  const MountConfig& mount = config.mounts[index];
  if (cache == nullptr || !mount.cache) return false;
  if (mount.type != "localfs") return true;
  for (const MountConfig& other : config.mounts) {
    if (other.type != "localfs" || !overlap(real_directory(mount), real_directory(other))) continue;
    warnings.push_back(fmt::format("{}: {} and {} overlap: this mount is not cached",
                                   config.place(fmt::format("storage.agfs.mounts[{}]", index)), mount.local_dir,
                                   other.local_dir));
    return false;
  }
  return true;
}

Result<void> Instance::Parts::open_mount(size_t index) {
  const MountConfig& mount = config.mounts[index];
  const auto failed = [&](const Error& error) {
    // Whatever is wrong, the start ends here and the operator looks at this line of the file.
    const std::string place = config.place(fmt::format("storage.agfs.mounts[{}]", index));
    return fail(ErrorCode::config, fmt::format("{}: {}", place, error.message), error.sys_errno);
  };
  auto path = Path::parse(mount.path);
  if (!path) return failed(path.error());
  auto backend = open_backend(mount);
  if (!backend) return failed(backend.error());
  const bool cached = may_cache(index);
  std::shared_ptr<FileSystem> file_system = *backend;
  if (cache != nullptr && !file_system->traits().control) {
    auto wrapped = cache->wrap(mount, *path, file_system, cached);
    if (!wrapped) return failed(wrapped.error());
    file_system = std::move(*wrapped);
  }
  auto counted = std::make_shared<StatsFileSystem>(std::move(file_system));
  if (auto mounted = table->mount(*path, std::move(counted)); !mounted) return failed(mounted.error());
  mounts.push_back({path->text(), mount.type, mount.local_dir, cached});
  return {};
}

Result<void> Instance::Parts::build_top() {
  PathLocksConfig lock_config;
  lock_config.expire_ms = static_cast<int64_t>(config.pathlock.lock_expire_secs * 1000);
  if (auto valid = lock_config.validate(); !valid) return valid;
  locks = std::make_shared<PathLocks>(lock_config);
  AutoLockConfig auto_locks;
  auto_locks.timeout_ms = static_cast<int64_t>(config.pathlock.lock_timeout_secs * 1000);
  auto counted =
      std::make_shared<StatsFileSystem>(std::make_shared<PathLockFileSystem>(table, locks, std::move(auto_locks)));
  // With a virtual root outermost: a tree whose only mount is at /local can be listed from /.
  top = std::make_shared<AgfsView>(std::move(counted), table);
  return {};
}

Instance::Instance(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Instance::~Instance() {
  constexpr int64_t kTimeout_ms = 1'000;
  (void)close(Deadline::in_ms(kTimeout_ms));
}

Result<std::unique_ptr<Instance>> Instance::open(const Config& config) {
  if (auto valid = config.validate(); !valid) return std::unexpected(valid.error());
  auto parts = std::make_unique<Parts>();
  parts->config = config;
  parts->warnings = config.warnings;
  if (config.cache.enabled && config.cache.provider != "disabled") {
    auto cache = CacheLayer::open(config, parts->warnings);
    if (!cache) return std::unexpected(cache.error());
    parts->cache = std::move(*cache);
  }
  for (size_t i = 0; i < config.mounts.size(); ++i) {
    if (auto opened = parts->open_mount(i); !opened) return std::unexpected(opened.error());
  }
  if (auto built = parts->build_top(); !built) return std::unexpected(built.error());
  return std::unique_ptr<Instance>(new Instance(std::move(parts)));
}

FileSystem& Instance::fs() { return *parts_->top; }

const Config& Instance::config() const { return parts_->config; }

std::vector<MountStatus> Instance::mounts() const { return parts_->mounts; }

const std::vector<std::string>& Instance::warnings() const { return parts_->warnings; }

CacheReport Instance::cache_report() const {
  return parts_->cache == nullptr ? CacheReport() : parts_->cache->report();
}

Result<void> Instance::set_cache_on(bool on) {
  if (parts_->cache == nullptr) return no_cache();
  parts_->cache->set_on(on);
  return {};
}

Result<void> Instance::flush_cache() {
  if (parts_->cache == nullptr) return no_cache();
  parts_->cache->flush();
  return {};
}

Result<void> Instance::invalidate(PathView path) {
  if (parts_->cache == nullptr) return no_cache();
  return parts_->cache->invalidate(path);
}

Result<void> Instance::check_provider(Deadline deadline) {
  if (parts_->cache == nullptr) return no_cache();
  return parts_->cache->check(deadline);
}

Result<void> Instance::close(Deadline deadline) {
  if (parts_->closed || parts_->cache == nullptr) return {};
  parts_->closed = true;
  return parts_->cache->close(deadline);
}

}  // namespace ragfs
