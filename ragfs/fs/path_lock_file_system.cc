#include "ragfs/fs/path_lock_file_system.h"

#include <algorithm>
#include <utility>

#include "ragfs/fs/names.h"

namespace ragfs {

PathLockFileSystem::PathLockFileSystem(std::shared_ptr<FileSystem> inner, std::shared_ptr<PathLocks> locks,
                                       AutoLockConfig config)
    : inner_(std::move(inner)), locks_(std::move(locks)), config_(std::move(config)) {}

bool PathLockFileSystem::skips(PathView path) const {
  if (is_internal_name(path.name())) return true;
  return std::ranges::any_of(config_.skip_prefixes,
                             [&](const std::string& prefix) { return path.is_within(PathView::from_normal(prefix)); });
}

Result<PathLockTable::Held> PathLockFileSystem::lock(const Context& ctx, std::vector<PathLockRequest> requests) {
  if (ctx.disable_auto_pathlock) return PathLockTable::Held();
  std::erase_if(requests, [&](const PathLockRequest& request) { return skips(request.path); });
  if (requests.empty()) return PathLockTable::Held();
  if (ctx.lease_ref.empty()) return locks_->hold(requests, config_.timeout_ms);
  Result<void> covered = locks_->check_covers(ctx.lease_ref, requests);
  if (!covered) return std::unexpected(std::move(covered.error()));
  return PathLockTable::Held();
}

Result<void> PathLockFileSystem::create(const Context& ctx, PathView path) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->create(ctx, path);
}

Result<void> PathLockFileSystem::remove(const Context& ctx, PathView path) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->remove(ctx, path);
}

Result<void> PathLockFileSystem::remove_all(const Context& ctx, PathView path) {
  Result<PathLockTable::Held> held = lock(ctx, {{path, PathLockKind::subtree}});
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->remove_all(ctx, path);
}

Result<WriteResult> PathLockFileSystem::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                              WriteFlag flag) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->write(ctx, path, data, offset, flag);
}

std::vector<Result<WriteResult>> PathLockFileSystem::write_many(const Context& ctx, std::span<const WriteItem> items) {
  const auto refuse = [&](const Error& error) {
    return std::vector<Result<WriteResult>>(items.size(), Result<WriteResult>(std::unexpected(error)));
  };
  if (const auto distinct = check_distinct(items); !distinct) return refuse(distinct.error());
  std::vector<PathLockRequest> requests;
  requests.reserve(items.size());
  for (const WriteItem& item : items) requests.push_back({item.path, PathLockKind::exact});
  const Result<PathLockTable::Held> held = lock(ctx, std::move(requests));
  if (!held) return refuse(held.error());
  return inner_->write_many(ctx, items);
}

std::vector<Result<Bytes>> PathLockFileSystem::read_many(const Context& ctx, std::span<const PathView> paths) {
  return inner_->read_many(ctx, paths);
}

std::vector<Result<FileInfo>> PathLockFileSystem::stat_many(const Context& ctx, std::span<const PathView> paths) {
  return inner_->stat_many(ctx, paths);
}

std::vector<Result<std::vector<FileInfo>>> PathLockFileSystem::read_dir_many(const Context& ctx,
                                                                             std::span<const PathView> paths) {
  return inner_->read_dir_many(ctx, paths);
}

Result<bool> PathLockFileSystem::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                                   std::string_view replacement) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->compare_and_write(ctx, path, expected, replacement);
}

Result<bool> PathLockFileSystem::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->compare_and_remove(ctx, path, expected);
}

Result<void> PathLockFileSystem::truncate(const Context& ctx, PathView path, uint64_t size) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->truncate(ctx, path, size);
}

Result<void> PathLockFileSystem::touch(const Context& ctx, PathView path) {
  Result<PathLockTable::Held> held = lock_exact(ctx, path);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->touch(ctx, path);
}

Result<void> PathLockFileSystem::rename(const Context& ctx, PathView from, PathView to) {
  PathLockKind kind = PathLockKind::exact;
  if (!ctx.disable_auto_pathlock) {
    const Result<FileInfo> moved = inner_->stat(ctx, from);
    if (moved && moved->is_dir()) kind = PathLockKind::subtree;
  }
  Result<PathLockTable::Held> held = lock(ctx, {{from, kind}, {to, PathLockKind::exact}});
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->rename(ctx, from, to);
}

Result<void> PathLockFileSystem::replace(const Context& ctx, PathView from, PathView to) {
  Result<PathLockTable::Held> held = lock(ctx, {{from, PathLockKind::exact}, {to, PathLockKind::exact}});
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->replace(ctx, from, to);
}

Result<WriteResult> PathLockFileSystem::copy(const Context& ctx, PathView from, PathView to) {
  Result<PathLockTable::Held> held = lock_exact(ctx, to);
  if (!held) return std::unexpected(std::move(held.error()));
  return inner_->copy(ctx, from, to);
}

Result<void> PathLockFileSystem::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  return inner_->mkdir(ctx, path, mode);
}

Result<void> PathLockFileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  return inner_->ensure_parent_dirs(ctx, path, mode);
}

Result<void> PathLockFileSystem::chmod(const Context& ctx, PathView path, uint32_t mode) {
  return inner_->chmod(ctx, path, mode);
}

Result<Bytes> PathLockFileSystem::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return inner_->read(ctx, path, offset, size);
}

std::optional<FileInfo> PathLockFileSystem::stat_at_once(const Context& ctx, PathView path) {
  return inner_->stat_at_once(ctx, path);
}

std::optional<Bytes> PathLockFileSystem::read_at_once(const Context& ctx, PathView path) {
  return inner_->read_at_once(ctx, path);
}

Result<FileContent> PathLockFileSystem::read_file(const Context& ctx, PathView path) {
  return inner_->read_file(ctx, path);
}

Result<std::vector<FileInfo>> PathLockFileSystem::read_dir(const Context& ctx, PathView path) {
  return inner_->read_dir(ctx, path);
}

Result<std::vector<FileInfo>> PathLockFileSystem::read_internal_dir(const Context& ctx, PathView path) {
  return inner_->read_internal_dir(ctx, path);
}

Result<FileInfo> PathLockFileSystem::stat(const Context& ctx, PathView path) { return inner_->stat(ctx, path); }

Result<bool> PathLockFileSystem::exists(const Context& ctx, PathView path) { return inner_->exists(ctx, path); }

Result<std::string> PathLockFileSystem::version(const Context& ctx, PathView path) {
  return inner_->version(ctx, path);
}

Result<Path> PathLockFileSystem::resolve(const Context& ctx, PathView path) { return inner_->resolve(ctx, path); }

Result<std::vector<TreeEntry>> PathLockFileSystem::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return inner_->tree(ctx, path, options);
}

Result<GlobPage> PathLockFileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                          const GlobOptions& options) {
  return inner_->glob(ctx, path, pattern, options);
}

Result<void> PathLockFileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options,
                                      const GrepSink& sink) {
  return inner_->grep(ctx, path, options, sink);
}

}  // namespace ragfs
