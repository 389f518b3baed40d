#include "ragfs/cache/cached_file_system.h"

#include <fmt/format.h>

#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"
#include "ragfs/cache/rules.h"
#include "ragfs/fs/exception_barrier.h"
#include "ragfs/fs/glob.h"
#include "ragfs/fs/walk.h"

namespace ragfs {
namespace {

std::string_view identity_of(const CachedMountConfig& config, const FileSystem& backend) {
  return config.identity.empty() ? std::string_view(backend.traits().identity) : config.identity;
}

}  // namespace

Result<void> CachedMountConfig::validate() const {
  if (!PathView::is_normal(mount_path)) {
    return fail(ErrorCode::config, fmt::format("mount path: '{}' is not a normalised absolute path", mount_path));
  }
  if (!PathView::is_normal(identity_prefix)) {
    return fail(ErrorCode::config, fmt::format("identity prefix: '{}' is not a normalised path", identity_prefix));
  }
  if (revalidate_ms < 0) {
    return fail(ErrorCode::config,
                fmt::format("revalidate_ms: {} is not allowed; it must be at least 0", revalidate_ms));
  }
  return policy.validate();
}

CachedFileSystem::CachedFileSystem(std::shared_ptr<FileSystem> backend, std::shared_ptr<CoherenceDomain> domain,
                                   const CachedMountConfig& config)
    : backend_(std::make_shared<ExceptionBarrier>(std::move(backend), config.slow_calls)),
      domain_(std::move(domain)),
      identity_(domain_->backend(identity_of(config, *backend_), config.use)),
      prefix_(config.identity_prefix == "/" ? "" : config.identity_prefix),
      nested_(prefix_.empty() ? nullptr : identity_->nested.add(prefix_)),
      cacheable_identity_(!identity_of(config, *backend_).empty() && !backend_->traits().case_insensitive),
      revalidate_ns_(config.revalidate_ms * 1'000'000),
      verify_one_in_(config.revalidate_ms > 0 || identity_->use.shared ? 0 : config.verify_one_in),
      policy_(config.policy, PathView::from_normal(config.mount_path)),
      filled_(config.policy.write_admission == WriteAdmission::read_before ? std::make_unique<FilledKeys>() : nullptr),
      enabled_(config.enabled),
      ahead_(domain_->prefetch_lane() != nullptr && cacheable_identity_ && !identity_->use.shared
                 ? std::make_unique<ReadAhead>(*this, *domain_->prefetch_lane())
                 : nullptr),
      fork_guard_([this] {
        if (rule_enabled(Rule::kForkLeaves)) enabled_.store(false);
      }) {
  if (config.enabled && cacheable_identity_) identity_->cached.store(true);
}

CachedFileSystem::~CachedFileSystem() = default;

bool CachedFileSystem::stop_prefetch(Deadline deadline) { return ahead_ == nullptr || ahead_->stop(deadline); }

Result<std::vector<FileInfo>> CachedFileSystem::read_internal_dir(const Context& ctx, PathView path) {
  return backend_->read_internal_dir(ctx, path);
}

Result<std::string> CachedFileSystem::version(const Context& ctx, PathView path) {
  return backend_->version(ctx, path);
}

Result<Path> CachedFileSystem::resolve(const Context& ctx, PathView path) { return backend_->resolve(ctx, path); }

// Walking is done here, over cached listings, by the same code that walks for a backend: the results are the same.
Result<std::vector<TreeEntry>> CachedFileSystem::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  DirectorySource source;
  source.list = [&](PathView directory) { return entries_of(ctx, directory); };
  return walk_tree(ctx, path, options, source);
}

Result<GlobPage> CachedFileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                        const GlobOptions& options) {
  DirectorySource source;
  source.list = [&](PathView directory) { return entries_of(ctx, directory); };
  return walk_glob(ctx, path, pattern, options, source);
}

Result<void> CachedFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                    const GrepSink& sink) {
  return backend_->grep(ctx, path, options, sink);
}

}  // namespace ragfs
