#include "ragfs/cache/cached_file_system.h"

#include <fmt/format.h>

#include "ragfs/cache/cached_target.h"
#include "ragfs/cache/read_ahead.h"
#include "ragfs/cache/rules.h"
#include "ragfs/fs/exception_barrier.h"
#include "ragfs/fs/glob.h"
#include "ragfs/fs/grep.h"
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
      cached_walks_(config.cached_walks),
      cached_grep_(config.cached_grep),
      policy_(config.policy, PathView::from_normal(config.mount_path)),
      notes_hot_(domain_->config().hot_keys && cacheable_identity_),
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
  if (!cached_walks_) return backend_->tree(ctx, path, options);
  DirectorySource source;
  source.list = [&](PathView directory) { return entries_of(ctx, directory); };
  return walk_tree(ctx, path, options, source);
}

Result<GlobPage> CachedFileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                        const GlobOptions& options) {
  if (!cached_walks_) return backend_->glob(ctx, path, pattern, options);
  DirectorySource source;
  source.list = [&](PathView directory) { return entries_of(ctx, directory); };
  return walk_glob(ctx, path, pattern, options, source);
}

Result<void> CachedFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                    const GrepSink& sink) {
  if (!cached_grep_) return backend_->grep(ctx, path, options, sink);
  GrepSource source;
  source.directories.list = [&](PathView directory) { return entries_of(ctx, directory); };
  source.stat = [&](PathView file) { return stat(ctx, file); };
  source.read = [&](PathView file, uint64_t offset, uint64_t size) { return read_for_grep(ctx, file, offset, size); };
  const GrepStyle style = backend_->traits().greps_as_rg ? GrepStyle::local() : GrepStyle::everything();
  return walk_grep(ctx, path, options, style, source, sink);
}

Result<Bytes> CachedFileSystem::read_for_grep(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  FileInfo info;
  // The listing that led here is cached, as a rule, and tells the size.
  const bool whole = offset == 0 && stat_from_cache(ctx, path, info) == Known::present && info.kind == FileKind::file &&
                     info.size <= policy_.config().max_file_size_bytes;
  if (!whole) return read(ctx, path, offset, size);
  const Target target(*this, path);
  if (std::optional<Bytes> payload = find_payload(ctx, target)) {
    count_hit(path, *payload, false);
    return std::move(*payload).slice(0, size);
  }
  count_miss(path, false);
  Result<FileContent> content = read_through(ctx, target);
  if (!content) return std::unexpected(std::move(content.error()));
  return std::move(content->data).slice(0, size);
}

}  // namespace ragfs
