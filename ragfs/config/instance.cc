#include "ragfs/config/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ragfs/base/pause_point.h"
#include "ragfs/base/sync.h"
#include "ragfs/config/factories.h"
#include "ragfs/fs/agfs_view.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/path_lock_file_system.h"
#include "ragfs/fs/stats_file_system.h"

namespace ragfs {
namespace {

bool lies_below(const std::string& outer, const std::string& inner) {
  return inner.size() > outer.size() && inner.starts_with(outer) && (outer == "/" || inner[outer.size()] == '/');
}

// True when one directory lies in the other, and they are not the same one.
bool overlap(const std::string& a, const std::string& b) { return lies_below(a, b) || lies_below(b, a); }

std::string real_directory(const MountConfig& mount) {
  std::error_code error;
  const auto real = std::filesystem::canonical(mount.local_dir, error);
  return error ? mount.local_dir : real.string();
}

std::unexpected<Error> no_cache() { return fail(ErrorCode::not_supported, "there is no cache in this configuration"); }

}  // namespace

struct Instance::Parts {
  Config config;
  std::unique_ptr<CacheLayer> cache;  // there without a cache too
  mutable Mutex mutex;
  std::vector<std::string> warnings RAGFS_GUARDED_BY(mutex);
  struct Mounted {
    MountStatus status;
    const FileSystem* wrapped;  // what the cache layer made of it; nullptr without one
    std::string directory;      // localfs: without symlinks
  };
  std::vector<Mounted> mounts RAGFS_GUARDED_BY(mutex);
  // Directories that calls of mount() are about to show.
  std::vector<std::string> being_mounted RAGFS_GUARDED_BY(mutex);
  std::shared_ptr<MountTable> table = std::make_shared<MountTable>();
  std::shared_ptr<PathLocks> locks;
  std::shared_ptr<FileSystem> top;
  bool closed = false;

  // A mount whose directory lies in that of another shows the same files: it names their objects as the outermost does.
  // Errors: those of opening the outermost directory.
  Result<IdentityPlace> place_of(const MountConfig& mount) const;
  // Before mount() opens it. Errors: mount_point_exists; config when the directory overlaps one that is shown already.
  Result<void> reserve(const Path& path, const std::string& directory);
  // `place` is what messages call it.
  Result<OpenedMount> open_backend_of(const MountConfig& mount, const std::string& place) const;
  Result<void> show(const OpenedMount& mount, const std::string& place, bool at_run_time);
  bool has_cache() const { return cache != nullptr && cache->configured(); }
  // Statistics and path locks around the tree of mounts.
  Result<void> build_top();
};

Result<IdentityPlace> Instance::Parts::place_of(const MountConfig& mount) const {
  IdentityPlace place;
  if (mount.type != "localfs") return place;
  const std::string directory = real_directory(mount);
  const MountConfig* outermost = nullptr;
  std::string top = directory;
  for (const MountConfig& other : config.mounts) {
    if (other.type != "localfs") continue;
    if (std::string real = real_directory(other); lies_below(real, top)) {
      outermost = &other;
      top = std::move(real);
    }
  }
  if (outermost == nullptr) return place;
  const auto opened = open_backend(*outermost);
  if (!opened) return std::unexpected(opened.error());
  place.identity = (*opened)->traits().identity;
  place.prefix = directory.substr(top == "/" ? 0 : top.size());
  return place;
}

// What is written through one of two overlapping directories would not be seen by the other's cache: only a start,
// which knows all of them, can name their files alike. The same directory twice has one name anyway.
Result<void> Instance::Parts::reserve(const Path& path, const std::string& directory) {
  const auto refuse = [&](const std::string& other) {
    return fail(ErrorCode::config, fmt::format("{}: {} overlaps {}", path.text(), directory, other));
  };
  const MutexLock lock(mutex);
  for (const Mounted& mounted : mounts) {
    if (mounted.status.path == path.text()) return fail(ErrorCode::mount_point_exists, path.text());
    if (directory.empty() || mounted.directory.empty() || !overlap(directory, mounted.directory)) continue;
    return refuse(fmt::format("{}, which is mounted at {}", mounted.directory, mounted.status.path));
  }
  for (const std::string& other : being_mounted) {
    if (!directory.empty() && !other.empty() && overlap(directory, other)) return refuse(other);
  }
  being_mounted.push_back(directory);
  return {};
}

namespace {

// Whatever is wrong, a start ends here and the operator looks at this line of the file.
std::unexpected<Error> fail_mount(const std::string& place, const Error& error) {
  return fail(ErrorCode::config, fmt::format("{}: {}", place, error.message), error.sys_errno);
}

}  // namespace

Result<OpenedMount> Instance::Parts::open_backend_of(const MountConfig& mount, const std::string& place) const {
  auto backend = open_backend(mount);
  if (!backend) return fail_mount(place, backend.error());
  auto identity = place_of(mount);
  if (!identity) return fail_mount(place, identity.error());
  return OpenedMount{&mount, *std::move(backend), *std::move(identity)};
}

Result<void> Instance::Parts::show(const OpenedMount& mount, const std::string& place, bool at_run_time) {
  auto path = Path::parse(mount.config->path);
  if (!path) return fail_mount(place, path.error());
  bool cached = false;
  std::shared_ptr<FileSystem> file_system = mount.backend;
  const bool wrap = !file_system->traits().control;
  if (wrap) {
    std::vector<std::string> told;
    auto made = cache->wrap(mount, *path, cached, told);
    if (!made) return fail_mount(place, made.error());
    file_system = std::move(*made);
    {
      const MutexLock lock(mutex);
      for (std::string& warning : told) warnings.push_back(std::move(warning));
    }
    // It may have been mounted before, and its files changed since by another name.
    if (at_run_time && cached) {
      if (auto done = cache->invalidate(*path); !done) {
        cache->unwrap(file_system.get());
        return done;
      }
    }
  }
  const FileSystem* const wrapped = wrap ? file_system.get() : nullptr;
  auto counted = std::make_shared<StatsFileSystem>(std::move(file_system));
  if (auto mounted = table->mount(*path, std::move(counted)); !mounted) {
    if (wrap) cache->unwrap(wrapped);
    return mounted.error().code == ErrorCode::mount_point_exists ? mounted : fail_mount(place, mounted.error());
  }
  const MountConfig& config_of_mount = *mount.config;
  std::string directory = config_of_mount.type == "localfs" ? real_directory(config_of_mount) : std::string();
  const MutexLock lock(mutex);
  mounts.push_back(
      {{path->text(), config_of_mount.type, config_of_mount.local_dir, cached}, wrapped, std::move(directory)});
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
  std::vector<std::string> warnings = config.warnings;
  std::vector<OpenedMount> opened;
  std::vector<std::string> places;
  for (size_t i = 0; i < parts->config.mounts.size(); ++i) {
    places.push_back(config.place(fmt::format("storage.agfs.mounts[{}]", i)));
    auto mount = parts->open_backend_of(parts->config.mounts[i], places.back());
    if (!mount) return std::unexpected(std::move(mount.error()));
    opened.push_back(*std::move(mount));
  }
  auto cache = CacheLayer::open(config, opened, warnings);
  if (!cache) return std::unexpected(std::move(cache.error()));
  parts->cache = *std::move(cache);
  {
    const MutexLock lock(parts->mutex);
    parts->warnings = std::move(warnings);
  }
  for (size_t i = 0; i < opened.size(); ++i) {
    if (auto shown = parts->show(opened[i], places[i], false); !shown) return std::unexpected(std::move(shown.error()));
  }
  if (auto built = parts->build_top(); !built) return std::unexpected(built.error());
  return std::unique_ptr<Instance>(new Instance(std::move(parts)));
}

FileSystem& Instance::fs() { return *parts_->top; }

const Config& Instance::config() const { return parts_->config; }

std::vector<MountStatus> Instance::mounts() const {
  std::vector<MountStatus> all;
  const MutexLock lock(parts_->mutex);
  for (const Parts::Mounted& mounted : parts_->mounts) all.push_back(mounted.status);
  return all;
}

std::vector<std::string> Instance::warnings() const {
  const MutexLock lock(parts_->mutex);
  return parts_->warnings;
}

Result<void> Instance::mount(const MountConfig& config) {
  const auto path = Path::parse(config.path);
  if (!path) return std::unexpected(path.error());
  const std::string directory = config.type == "localfs" ? real_directory(config) : std::string();
  if (auto free = parts_->reserve(*path, directory); !free) return free;
  RAGFS_PAUSE_POINT("mount.reserved");
  const Result<OpenedMount> opened = parts_->open_backend_of(config, path->text());
  Result<void> mounted = opened ? parts_->show(*opened, path->text(), true) : std::unexpected(opened.error());
  const MutexLock lock(parts_->mutex);
  parts_->being_mounted.erase(std::ranges::find(parts_->being_mounted, directory));
  return mounted;
}

Result<void> Instance::unmount(PathView path) {
  const auto gone = parts_->table->unmount(path);
  if (!gone) return std::unexpected(gone.error());
  const MutexLock lock(parts_->mutex);
  for (const Parts::Mounted& mounted : parts_->mounts) {
    if (mounted.status.path == path.text() && mounted.wrapped != nullptr) parts_->cache->unwrap(mounted.wrapped);
  }
  std::erase_if(parts_->mounts, [&](const Parts::Mounted& mounted) { return mounted.status.path == path.text(); });
  return {};
}

CacheReport Instance::cache_report() const { return parts_->cache->report(); }

std::vector<MountOperations> Instance::operations() const {
  std::vector<MountOperations> out;
  for (const Mount& mount : parts_->table->mounts()) {
    const auto* counted = dynamic_cast<const StatsFileSystem*>(mount.file_system.get());
    if (counted == nullptr) continue;
    out.push_back({mount.path.text(), mount.file_system->traits().type, counted->stats().snapshot()});
  }
  return out;
}

Result<void> Instance::set_cache_on(bool on) {
  if (!parts_->has_cache()) return no_cache();
  parts_->cache->set_on(on);
  return {};
}

Result<void> Instance::flush_cache() {
  if (!parts_->has_cache()) return no_cache();
  parts_->cache->flush();
  return {};
}

Result<void> Instance::new_epoch(Deadline deadline) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->new_epoch(deadline);
}

Result<void> Instance::rejoin_cache(Deadline deadline) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->rejoin(deadline);
}

Result<void> Instance::invalidate(PathView path) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->invalidate(path);
}

Result<VerifyReport> Instance::verify_cache(const Context& ctx, PathView path) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->verify(ctx, path);
}

Result<std::vector<HotKey>> Instance::hot_keys(PathView path, size_t most) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->hot_keys(path, most);
}

Result<WarmReport> Instance::warm_cache(const Context& ctx, PathView path) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->warm(ctx, path);
}

Result<uint64_t> Instance::purge_account(std::string_view account, Deadline deadline) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->purge(account, deadline);
}

Result<void> Instance::check_provider(Deadline deadline) {
  if (!parts_->has_cache()) return no_cache();
  return parts_->cache->check(deadline);
}

std::vector<std::string> Instance::provider_warnings(Deadline deadline) {
  return parts_->has_cache() ? parts_->cache->engine_warnings(deadline) : std::vector<std::string>();
}

Result<void> Instance::close(Deadline deadline) {
  if (parts_->closed) return {};
  parts_->closed = true;
  return parts_->cache->close(deadline);
}

}  // namespace ragfs
