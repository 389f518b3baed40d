#include "ragfs/fs/agfs_view.h"

#include <algorithm>
#include <utility>

#include "ragfs/fs/line_search.h"

namespace ragfs {
namespace {

FileInfo virtual_directory(std::string_view name, int64_t mtime_ns) {
  FileInfo info;
  info.name = name.empty() ? "/" : std::string(name);
  info.mode = kDefaultDirMode;
  info.mtime_ns = mtime_ns;
  info.kind = FileKind::directory;
  return info;
}

// One search made of several: the labels, levels and limits of its parts in terms of the whole.
class GrepParts {
 public:
  GrepParts(PathView root, const GrepOptions& options, const GrepSink& sink)
      : root_(root), options_(options), sink_(sink), left_(options.node_limit) {
    if (PathView::is_normal(options.exclude_path)) exclude_ = PathView::from_normal(options.exclude_path);
  }

  bool done() const { return stopped_; }
  bool reaches(PathView part) const {
    if (exclude_ && part.is_within(*exclude_)) return false;
    return !options_.level_limit || depth_of(part) < *options_.level_limit;
  }
  GrepOptions options_at(PathView part) const {
    GrepOptions options = options_;
    options.node_limit.reset();  // the sink counts, because it drops what a mount covers
    if (options.level_limit) *options.level_limit -= std::min(*options.level_limit, depth_of(part));
    return options;
  }
  // `mounts` are all below the root of the whole search.
  GrepSink sink_for(PathView part, const std::vector<Mount>& mounts) {
    return [this, part, &mounts](GrepMatch&& match) {
      const Result<Path> file =
          match.file == "." ? Path(part) : Path::parse(std::string(part.text()) + "/" + match.file);
      if (!file) return true;
      const bool covered = std::ranges::any_of(mounts, [&](const Mount& mount) {
        return mount.path.view() != part && mount.path.view().is_within(part) && file->view().is_within(mount.path);
      });
      if (covered) return true;
      const std::string_view label = file->view().relative_to(root_).text();
      match.file = label.size() == 1 ? "." : label.substr(1);
      if (left_) --*left_;
      stopped_ = !sink_(std::move(match)) || left_ == 0;
      return !stopped_;
    };
  }

 private:
  uint64_t depth_of(PathView part) const { return part.depth() - root_.depth(); }

  const PathView root_;
  const GrepOptions& options_;
  const GrepSink& sink_;
  std::optional<uint64_t> left_;
  std::optional<PathView> exclude_;
  bool stopped_ = false;
};

}  // namespace

AgfsView::AgfsView(std::shared_ptr<FileSystem> top, std::shared_ptr<const MountTable> mounts)
    : top_(std::move(top)), mounts_(std::move(mounts)) {}

AgfsView::Below AgfsView::below(PathView path) const {
  Below found;
  for (const Mount& mount : mounts_->mounts()) {
    const PathView at = mount.path;
    if (at == path || !at.is_within(path)) continue;
    const std::string_view rest = at.relative_to(path).text().substr(1);
    const std::string_view name = rest.substr(0, rest.find('/'));
    // Mounts are sorted by path, but "/a", "/a-b", "/a/c" part those of one child.
    if (std::ranges::find(found.children, name) == found.children.end()) found.children.emplace_back(name);
    found.oldest_ns = found.any ? std::min(found.oldest_ns, mount.mounted_at_ns) : mount.mounted_at_ns;
    found.any = true;
  }
  return found;
}

bool AgfsView::is_virtual(const Error& error, const Below& below) const {
  if (error.code == ErrorCode::mount_point_not_found) return true;
  return below.any && error.code == ErrorCode::not_found;
}

Result<std::vector<FileInfo>> AgfsView::read_dir(const Context& ctx, PathView path) {
  const Below under = below(path);
  Result<std::vector<FileInfo>> entries = top_->read_dir(ctx, path);
  if (!entries) {
    if (!is_virtual(entries.error(), under)) return entries;
    if (!under.any && !path.is_root()) return fail(ErrorCode::not_found, std::string(path.text()));
    entries = std::vector<FileInfo>();
  }
  for (const std::string& name : under.children) {
    const Result<Path> child = Path::join(path, name);
    if (!child) continue;
    Result<FileInfo> info = stat(ctx, *child);
    // A mount that does not answer is still listed: its own calls tell what is wrong.
    if (!info) info = virtual_directory(name, under.oldest_ns);
    std::erase_if(*entries, [&](const FileInfo& covered) { return covered.name == name; });
    entries->push_back(std::move(*info));
  }
  if (!under.children.empty()) sort_entries(*entries);
  return entries;
}

Result<FileInfo> AgfsView::stat(const Context& ctx, PathView path) {
  Result<FileInfo> info = top_->stat(ctx, path);
  if (info) {
    if (!path.is_root() && info->name == "/") info->name = path.name();
    return info;
  }
  const ErrorCode code = info.error().code;
  if (code != ErrorCode::mount_point_not_found && code != ErrorCode::not_found) return info;
  const Below under = below(path);
  if (!is_virtual(info.error(), under)) return info;
  if (!under.any && !path.is_root()) return fail(ErrorCode::not_found, std::string(path.text()));
  return virtual_directory(path.name(), under.oldest_ns);
}

std::vector<Result<FileInfo>> AgfsView::stat_many(const Context& ctx, std::span<const PathView> paths) {
  std::vector<Result<FileInfo>> infos = top_->stat_many(ctx, paths);
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool mount_root = infos[i] && !paths[i].is_root() && infos[i]->name == "/";
    if (mount_root) infos[i]->name = paths[i].name();
    if (infos[i]) continue;
    const ErrorCode code = infos[i].error().code;
    const bool may_be_virtual =
        code == ErrorCode::mount_point_not_found || (code == ErrorCode::not_found && below(paths[i]).any);
    if (may_be_virtual) infos[i] = stat(ctx, paths[i]);
  }
  return infos;
}

// Directories that mounts lie below are put together one by one; there are few of them.
std::vector<Result<std::vector<FileInfo>>> AgfsView::read_dir_many(const Context& ctx,
                                                                   std::span<const PathView> paths) {
  const std::vector<Mount> mounts = mounts_->mounts();
  const auto covers_mount = [&](PathView path) {
    return std::ranges::any_of(
        mounts, [&](const Mount& mount) { return mount.path.view() != path && mount.path.view().is_within(path); });
  };
  std::vector<Result<std::vector<FileInfo>>> listings(paths.size());
  std::vector<PathView> plain;
  std::vector<size_t> places;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (covers_mount(paths[i])) {
      listings[i] = read_dir(ctx, paths[i]);
    } else {
      plain.push_back(paths[i]);
      places.push_back(i);
    }
  }
  std::vector<Result<std::vector<FileInfo>>> found = top_->read_dir_many(ctx, plain);
  for (size_t i = 0; i < places.size(); ++i) {
    const bool no_mount = !found[i] && found[i].error().code == ErrorCode::mount_point_not_found;
    listings[places[i]] = no_mount ? read_dir(ctx, plain[i]) : std::move(found[i]);
  }
  return listings;
}

std::vector<Result<Bytes>> AgfsView::read_many(const Context& ctx, std::span<const PathView> paths) {
  return top_->read_many(ctx, paths);
}

std::vector<Result<WriteResult>> AgfsView::write_many(const Context& ctx, std::span<const WriteItem> items) {
  return top_->write_many(ctx, items);
}

Result<std::vector<TreeEntry>> AgfsView::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return below(path).any ? FileSystem::tree(ctx, path, options) : top_->tree(ctx, path, options);
}

Result<GlobPage> AgfsView::glob(const Context& ctx, PathView path, std::string_view pattern,
                                const GlobOptions& options) {
  return below(path).any ? FileSystem::glob(ctx, path, pattern, options) : top_->glob(ctx, path, pattern, options);
}

// Each mount searches its own part, with its own rules. What a mount covers is not searched.
Result<void> AgfsView::grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) {
  std::vector<Mount> inner = mounts_->mounts();
  std::erase_if(inner,
                [&](const Mount& mount) { return mount.path.view() == path || !mount.path.view().is_within(path); });
  if (inner.empty()) return top_->grep(ctx, path, options, sink);
  const Result<LinePattern> pattern = LinePattern::compile(options.pattern, options.case_insensitive);
  if (!pattern) return std::unexpected(pattern.error());  // also where no mount would be asked
  if (options.node_limit == 0) return {};
  GrepParts parts(path, options, sink);
  Result<void> own = top_->grep(ctx, path, parts.options_at(path), parts.sink_for(path, inner));
  const ErrorCode code = own ? ErrorCode::internal : own.error().code;
  if (!own && code != ErrorCode::mount_point_not_found && code != ErrorCode::not_found) return own;
  for (const Mount& mount : inner) {
    if (parts.done() || !options.recursive) break;
    if (!parts.reaches(mount.path)) continue;
    Result<void> searched =
        top_->grep(ctx, mount.path, parts.options_at(mount.path), parts.sink_for(mount.path, inner));
    if (!searched) return searched;
  }
  return {};
}

Result<void> AgfsView::create(const Context& ctx, PathView path) { return top_->create(ctx, path); }

Result<void> AgfsView::mkdir(const Context& ctx, PathView path, uint32_t mode) { return top_->mkdir(ctx, path, mode); }

Result<void> AgfsView::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  return top_->ensure_parent_dirs(ctx, path, mode);
}

Result<void> AgfsView::remove(const Context& ctx, PathView path) { return top_->remove(ctx, path); }

Result<void> AgfsView::remove_all(const Context& ctx, PathView path) { return top_->remove_all(ctx, path); }

Result<Bytes> AgfsView::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return top_->read(ctx, path, offset, size);
}

std::optional<FileInfo> AgfsView::stat_at_once(const Context& ctx, PathView path) {
  return top_->stat_at_once(ctx, path);
}
std::optional<Bytes> AgfsView::read_at_once(const Context& ctx, PathView path) { return top_->read_at_once(ctx, path); }

Result<FileContent> AgfsView::read_file(const Context& ctx, PathView path) { return top_->read_file(ctx, path); }

Result<WriteResult> AgfsView::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                    WriteFlag flag) {
  return top_->write(ctx, path, data, offset, flag);
}

Result<bool> AgfsView::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                         std::string_view replacement) {
  return top_->compare_and_write(ctx, path, expected, replacement);
}

Result<bool> AgfsView::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  return top_->compare_and_remove(ctx, path, expected);
}

Result<void> AgfsView::truncate(const Context& ctx, PathView path, uint64_t size) {
  return top_->truncate(ctx, path, size);
}

Result<void> AgfsView::touch(const Context& ctx, PathView path) { return top_->touch(ctx, path); }

Result<void> AgfsView::chmod(const Context& ctx, PathView path, uint32_t mode) { return top_->chmod(ctx, path, mode); }

Result<std::vector<FileInfo>> AgfsView::read_internal_dir(const Context& ctx, PathView path) {
  return top_->read_internal_dir(ctx, path);
}

Result<std::string> AgfsView::version(const Context& ctx, PathView path) { return top_->version(ctx, path); }

Result<Path> AgfsView::resolve(const Context& ctx, PathView path) { return top_->resolve(ctx, path); }

Result<void> AgfsView::rename(const Context& ctx, PathView from, PathView to) { return top_->rename(ctx, from, to); }

Result<void> AgfsView::replace(const Context& ctx, PathView from, PathView to) { return top_->replace(ctx, from, to); }

Result<WriteResult> AgfsView::copy(const Context& ctx, PathView from, PathView to) { return top_->copy(ctx, from, to); }

}  // namespace ragfs
