#include "ragfs/fs/file_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "ragfs/fs/glob.h"
#include "ragfs/fs/grep.h"
#include "ragfs/fs/names.h"
#include "ragfs/fs/walk.h"

namespace ragfs {
namespace {

// How often ensure_parent_dirs starts again after somebody removed what it had just seen or made.
constexpr int kParentAttempts = 4;

bool is_absence(ErrorCode code) { return code == ErrorCode::not_found || code == ErrorCode::not_a_directory; }

// Makes `dir` and its missing ancestors.
Result<void> ensure_dir(FileSystem& fs, const Context& ctx, PathView dir, uint32_t mode) {
  if (dir.is_root()) return {};
  Result<FileInfo> info = fs.stat(ctx, dir);
  if (info && info->is_dir()) return {};
  if (info) return fail(ErrorCode::not_a_directory, std::string(dir.text()));
  if (info.error().code != ErrorCode::not_found) return std::unexpected(std::move(info.error()));
  if (Result<void> above = ensure_dir(fs, ctx, dir.parent(), mode); !above) return above;
  Result<void> made = fs.mkdir(ctx, dir, mode);
  if (made || made.error().code != ErrorCode::already_exists) return made;
  // Somebody else made it first: fine, if it is a directory.
  info = fs.stat(ctx, dir);
  if (info && !info->is_dir()) return fail(ErrorCode::not_a_directory, std::string(dir.text()));
  return info ? Result<void>{} : std::unexpected(std::move(info.error()));
}

DirectorySource listings_of(FileSystem& fs, const Context& ctx) {
  return {[&fs, &ctx](PathView dir) { return fs.read_dir(ctx, dir); }, {}};
}

}  // namespace

Result<void> FileSystem::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  Result<void> done;
  for (int attempt = 0; attempt < kParentAttempts; ++attempt) {
    done = ensure_dir(*this, ctx, path.parent(), mode);
    if (done || done.error().code != ErrorCode::not_found) return done;
  }
  return done;
}

Result<bool> FileSystem::compare_and_write(const Context&, PathView path, std::string_view, std::string_view) {
  return fail(ErrorCode::not_supported, fmt::format("compare_and_write is not supported: {}", path.text()));
}

Result<bool> FileSystem::compare_and_remove(const Context&, PathView path, std::string_view) {
  return fail(ErrorCode::not_supported, fmt::format("compare_and_remove is not supported: {}", path.text()));
}

Result<std::vector<FileInfo>> FileSystem::read_internal_dir(const Context& ctx, PathView path) {
  return read_dir(ctx, path);
}

Result<bool> FileSystem::exists(const Context& ctx, PathView path) {
  Result<FileInfo> info = stat(ctx, path);
  if (info) return true;
  // "An ancestor is a file" is an answer too: nothing can be at this path.
  if (is_absence(info.error().code)) return false;
  return std::unexpected(std::move(info.error()));
}

std::optional<FileInfo> FileSystem::stat_at_once(const Context& /*ctx*/, PathView /*path*/) { return std::nullopt; }

std::optional<Bytes> FileSystem::read_at_once(const Context& /*ctx*/, PathView /*path*/) { return std::nullopt; }

Result<Path> FileSystem::resolve(const Context& /*ctx*/, PathView path) { return Path(path); }

Result<std::string> FileSystem::version(const Context& ctx, PathView path) {
  Result<FileInfo> info = stat(ctx, path);
  if (!info) return std::unexpected(std::move(info.error()));
  if (info->is_dir()) return fail(ErrorCode::is_a_directory, std::string(path.text()));
  return std::string();
}

Result<void> FileSystem::replace(const Context& ctx, PathView from, PathView to) {
  const Result<FileInfo> source = stat(ctx, from);
  if (!source) return std::unexpected(source.error());
  if (source->is_dir()) return fail(ErrorCode::invalid_operation, fmt::format("{} is a directory", from.text()));
  const Result<FileInfo> target = stat(ctx, to);
  if (target && target->is_dir()) return fail(ErrorCode::is_a_directory, std::string(to.text()));
  if (!target && !is_absence(target.error().code)) return std::unexpected(target.error());
  return rename(ctx, from, to);
}

Result<WriteResult> FileSystem::copy(const Context& ctx, PathView from, PathView to) {
  const Result<FileContent> content = read_file(ctx, from);
  if (!content) return std::unexpected(content.error());
  if (from == to) return WriteResult{content->meta.size, content->meta};
  if (Result<void> parents = ensure_parent_dirs(ctx, to, kDefaultDirMode); !parents) {
    return std::unexpected(std::move(parents.error()));
  }
  return write(ctx, to, content->data.view(), 0, WriteFlag::create);
}

Result<std::vector<TreeEntry>> FileSystem::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return walk_tree(ctx, path, options, listings_of(*this, ctx));
}

Result<GlobPage> FileSystem::glob(const Context& ctx, PathView path, std::string_view pattern,
                                  const GlobOptions& options) {
  return walk_glob(ctx, path, pattern, options, listings_of(*this, ctx));
}

Result<void> FileSystem::grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) {
  const GrepSource source{listings_of(*this, ctx), [&](PathView file) { return stat(ctx, file); },
                          [&](PathView file, uint64_t offset, uint64_t size) { return read(ctx, file, offset, size); }};
  return walk_grep(ctx, path, options, GrepStyle::everything(), source, sink);
}

void sort_entries(std::vector<FileInfo>& entries) {
  std::ranges::sort(entries, [](const FileInfo& a, const FileInfo& b) {
    if (a.is_dir() != b.is_dir()) return a.is_dir();
    return compare_listing_names(a.name, b.name) < 0;
  });
}

}  // namespace ragfs
