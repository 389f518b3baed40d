#include "ragfs/fs/mount_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ragfs/base/hash.h"
#include "ragfs/fs/names.h"

namespace ragfs {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const noexcept { return hash64(text); }
};

std::unexpected<Error> no_mount(PathView path) {
  return fail(ErrorCode::mount_point_not_found, std::string(path.text()));
}

void drop_internal(std::vector<FileInfo>& entries) {
  std::erase_if(entries, [](const FileInfo& info) { return is_internal_name(info.name); });
}

// A removal names the path as the caller wrote it.
Result<void> with_whole_path(Result<void> result, PathView whole, PathView within) {
  const bool renames =
      !result && result.error().code == ErrorCode::not_found && result.error().message == within.text();
  if (renames) result.error().message = whole.text();
  return result;
}

}  // namespace

// The mounts of one moment. Few mounts (the usual case) are compared one after the other, longest first; many are
// looked up by the hash of each ancestor that is not longer than the longest mount path.
class MountTable::Table {
 public:
  explicit Table(std::vector<Mount> mounts) : mounts_(std::move(mounts)) {
    std::ranges::sort(mounts_, [](const Mount& a, const Mount& b) {
      const size_t left = a.path.text().size();
      const size_t right = b.path.text().size();
      return left != right ? left > right : a.path < b.path;
    });
    if (mounts_.size() <= kCompared) return;
    for (const Mount& mount : mounts_) by_path_.emplace(mount.path.text(), &mount);
  }

  const Mount* find(PathView path) const {
    if (mounts_.size() > kCompared) return find_by_hash(path);
    for (const Mount& mount : mounts_) {
      if (path.is_within(mount.path)) return &mount;
    }
    return nullptr;
  }

  const Mount* at(PathView path) const {
    const Mount* const found = find(path);
    return found != nullptr && found->path.view() == path ? found : nullptr;
  }

  const std::vector<Mount>& all() const { return mounts_; }

 private:
  static constexpr size_t kCompared = 8;

  const Mount* find_by_hash(PathView path) const {
    const size_t longest = mounts_.front().path.text().size();
    PathView ancestor = path;
    if (path.text().size() > longest) {
      const size_t cut = path.text().rfind('/', longest);
      ancestor = cut == 0 ? PathView() : PathView::from_normal(path.text().substr(0, cut));
    }
    while (true) {
      const auto found = by_path_.find(ancestor.text());
      if (found != by_path_.end()) return found->second;
      if (ancestor.is_root()) return nullptr;
      ancestor = ancestor.parent();
    }
  }

  std::vector<Mount> mounts_;  // longest path first
  std::unordered_map<std::string_view, const Mount*, TextHash, std::equal_to<>> by_path_;
};

MountTable::MountTable() : table_(std::make_shared<const Table>(std::vector<Mount>())) {}
MountTable::~MountTable() = default;

Result<void> MountTable::mount(PathView path, std::shared_ptr<FileSystem> file_system) {
  const MutexLock lock(mutex_);
  std::vector<Mount> mounts;
  {
    const auto table = table_.pin();
    if (table->at(path) != nullptr) return fail(ErrorCode::mount_point_exists, std::string(path.text()));
    mounts = table->all();
  }
  if (mounts.size() >= kMaxMounts) return fail(ErrorCode::full, "too many mounts");
  mounts.push_back({Path(path), std::move(file_system), Clock::system().wall_ns()});
  table_.replace(std::make_shared<const Table>(std::move(mounts)));
  return {};
}

Result<std::shared_ptr<FileSystem>> MountTable::unmount(PathView path) {
  std::shared_ptr<FileSystem> removed;
  const MutexLock lock(mutex_);
  std::vector<Mount> mounts;
  {
    const auto table = table_.pin();
    const Mount* const found = table->at(path);
    if (found == nullptr) return no_mount(path);
    removed = found->file_system;
    mounts = table->all();
  }
  std::erase_if(mounts, [&](const Mount& mount) { return mount.path.view() == path; });
  table_.replace(std::make_shared<const Table>(std::move(mounts)));
  return removed;
}

std::vector<Mount> MountTable::mounts() const {
  std::vector<Mount> mounts = table_.pin()->all();
  std::ranges::sort(mounts, {}, &Mount::path);
  return mounts;
}

Result<Mount> MountTable::mount_of(PathView path) const {
  const auto table = table_.pin();
  const Mount* const found = table->find(path);
  if (found == nullptr) return no_mount(path);
  return *found;
}

Result<bool> MountTable::same_mount(PathView a, PathView b) const {
  const auto table = table_.pin();
  const Mount* const first = table->find(a);
  if (first == nullptr) return no_mount(a);
  const Mount* const second = table->find(b);
  if (second == nullptr) return no_mount(b);
  return first == second;
}

template <typename Operation>
auto MountTable::on_mount(PathView path, const Operation& operation) const {
  using Answer = decltype(operation(std::declval<const Mount&>(), path));
  // The pin keeps the mount alive until the operation ends, whatever is unmounted meanwhile.
  const auto table = table_.pin();
  const Mount* const found = table->find(path);
  if (found == nullptr) return Answer(no_mount(path));
  return operation(*found, path.relative_to(found->path));
}

template <typename Answer, typename Item, typename PathOf, typename Ask>
std::vector<Answer> MountTable::on_mounts(std::span<const Item> items, const PathOf& path_of, const Ask& ask) const {
  std::vector<Answer> answers(items.size());
  const auto table = table_.pin();
  std::map<const Mount*, std::vector<size_t>> places;
  for (size_t i = 0; i < items.size(); ++i) {
    Item item = items[i];
    const Mount* const mount = table->find(path_of(item));
    if (mount == nullptr) {
      answers[i] = no_mount(path_of(item));
    } else {
      places[mount].push_back(i);
    }
  }
  for (const auto& [mount, indexes] : places) {
    std::vector<Item> within;
    within.reserve(indexes.size());
    for (const size_t i : indexes) {
      within.push_back(items[i]);
      path_of(within.back()) = path_of(within.back()).relative_to(mount->path);
    }
    std::vector<Answer> some = ask(*mount->file_system, std::span<const Item>(within));
    for (size_t i = 0; i < indexes.size(); ++i) answers[indexes[i]] = std::move(some[i]);
  }
  return answers;
}

template <typename Operation>
Result<void> MountTable::on_one_mount(PathView from, PathView to, std::string_view verb,
                                      const Operation& operation) const {
  const auto table = table_.pin();
  const Mount* const source = table->find(from);
  if (source == nullptr) return no_mount(from);
  const Mount* const target = table->find(to);
  if (target == nullptr) return no_mount(to);
  if (source != target) {
    return fail(ErrorCode::invalid_operation, fmt::format("Cannot {} across different mount points", verb));
  }
  return operation(*source->file_system, from.relative_to(source->path), to.relative_to(source->path));
}

const FileSystemTraits& MountTable::traits() const {
  static const FileSystemTraits traits = [] {
    FileSystemTraits made;
    made.type = "mounts";
    return made;
  }();
  return traits;
}

Result<void> MountTable::create(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->create(ctx, p); });
}

Result<void> MountTable::mkdir(const Context& ctx, PathView path, uint32_t mode) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->mkdir(ctx, p, mode); });
}

Result<void> MountTable::ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->ensure_parent_dirs(ctx, p, mode); });
}

Result<void> MountTable::remove(const Context& ctx, PathView path) {
  return on_mount(path,
                  [&](const Mount& m, PathView p) { return with_whole_path(m.file_system->remove(ctx, p), path, p); });
}

Result<void> MountTable::remove_all(const Context& ctx, PathView path) {
  return on_mount(
      path, [&](const Mount& m, PathView p) { return with_whole_path(m.file_system->remove_all(ctx, p), path, p); });
}

std::optional<FileInfo> MountTable::stat_at_once(const Context& ctx, PathView path) {
  const auto table = table_.pin();
  const Mount* const found = table->find(path);
  return found == nullptr ? std::nullopt : found->file_system->stat_at_once(ctx, path.relative_to(found->path));
}

std::optional<Bytes> MountTable::read_at_once(const Context& ctx, PathView path) {
  const auto table = table_.pin();
  const Mount* const found = table->find(path);
  return found == nullptr ? std::nullopt : found->file_system->read_at_once(ctx, path.relative_to(found->path));
}

Result<Bytes> MountTable::read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->read(ctx, p, offset, size); });
}

Result<FileContent> MountTable::read_file(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->read_file(ctx, p); });
}

Result<WriteResult> MountTable::write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                      WriteFlag flag) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->write(ctx, p, data, offset, flag); });
}

Result<bool> MountTable::compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                           std::string_view replacement) {
  return on_mount(path, [&](const Mount& m, PathView p) {
    return m.file_system->compare_and_write(ctx, p, expected, replacement);
  });
}

Result<bool> MountTable::compare_and_remove(const Context& ctx, PathView path, std::string_view expected) {
  return on_mount(path,
                  [&](const Mount& m, PathView p) { return m.file_system->compare_and_remove(ctx, p, expected); });
}

Result<void> MountTable::truncate(const Context& ctx, PathView path, uint64_t size) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->truncate(ctx, p, size); });
}

Result<void> MountTable::touch(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->touch(ctx, p); });
}

Result<void> MountTable::chmod(const Context& ctx, PathView path, uint32_t mode) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->chmod(ctx, p, mode); });
}

Result<std::vector<FileInfo>> MountTable::read_dir(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) {
    Result<std::vector<FileInfo>> entries = m.file_system->read_dir(ctx, p);
    if (entries) {
      drop_internal(*entries);
      sort_entries(*entries);
    }
    return entries;
  });
}

Result<std::vector<FileInfo>> MountTable::read_internal_dir(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) {
    Result<std::vector<FileInfo>> entries = m.file_system->read_internal_dir(ctx, p);
    if (entries) sort_entries(*entries);
    return entries;
  });
}

Result<FileInfo> MountTable::stat(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->stat(ctx, p); });
}

Result<bool> MountTable::exists(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->exists(ctx, p); });
}

Result<std::string> MountTable::version(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) { return m.file_system->version(ctx, p); });
}

Result<Path> MountTable::resolve(const Context& ctx, PathView path) {
  return on_mount(path, [&](const Mount& m, PathView p) -> Result<Path> {
    Result<Path> within = m.file_system->resolve(ctx, p);
    if (!within) return within;
    return Path::concat(m.path, *within);
  });
}

Result<void> MountTable::rename(const Context& ctx, PathView from, PathView to) {
  return on_one_mount(from, to, "rename", [&](FileSystem& fs, PathView f, PathView t) { return fs.rename(ctx, f, t); });
}

Result<void> MountTable::replace(const Context& ctx, PathView from, PathView to) {
  return on_one_mount(from, to, "replace",
                      [&](FileSystem& fs, PathView f, PathView t) { return fs.replace(ctx, f, t); });
}

Result<WriteResult> MountTable::copy(const Context& ctx, PathView from, PathView to) {
  const auto table = table_.pin();
  const Mount* const source = table->find(from);
  if (source == nullptr) return no_mount(from);
  const Mount* const target = table->find(to);
  if (target == nullptr) return no_mount(to);
  if (source != target) return FileSystem::copy(ctx, from, to);
  return source->file_system->copy(ctx, from.relative_to(source->path), to.relative_to(source->path));
}

namespace {

PathView& path_itself(PathView& path) { return path; }

}  // namespace

std::vector<Result<Bytes>> MountTable::read_many(const Context& ctx, std::span<const PathView> paths) {
  return on_mounts<Result<Bytes>>(paths, path_itself,
                                  [&](FileSystem& fs, auto some) { return fs.read_many(ctx, some); });
}

std::vector<Result<FileInfo>> MountTable::stat_many(const Context& ctx, std::span<const PathView> paths) {
  return on_mounts<Result<FileInfo>>(paths, path_itself,
                                     [&](FileSystem& fs, auto some) { return fs.stat_many(ctx, some); });
}

std::vector<Result<std::vector<FileInfo>>> MountTable::read_dir_many(const Context& ctx,
                                                                     std::span<const PathView> paths) {
  auto listings = on_mounts<Result<std::vector<FileInfo>>>(
      paths, path_itself, [&](FileSystem& fs, auto some) { return fs.read_dir_many(ctx, some); });
  for (Result<std::vector<FileInfo>>& entries : listings) {
    if (!entries) continue;
    drop_internal(*entries);
    sort_entries(*entries);
  }
  return listings;
}

std::vector<Result<WriteResult>> MountTable::write_many(const Context& ctx, std::span<const WriteItem> items) {
  return on_mounts<Result<WriteResult>>(
      items, [](WriteItem& item) -> PathView& { return item.path; },
      [&](FileSystem& fs, auto some) { return fs.write_many(ctx, some); });
}

Result<std::vector<TreeEntry>> MountTable::tree(const Context& ctx, PathView path, const TreeOptions& options) {
  return on_mount(path, [&](const Mount& m, PathView p) {
    Result<std::vector<TreeEntry>> entries = m.file_system->tree(ctx, p, options);
    if (!entries) return entries;
    std::erase_if(*entries, [](const TreeEntry& entry) { return is_internal_name(entry.info.name); });
    if (m.path.view().is_root()) return entries;
    for (TreeEntry& entry : *entries) entry.path.insert(0, m.path.text());
    return entries;
  });
}

Result<GlobPage> MountTable::glob(const Context& ctx, PathView path, std::string_view pattern,
                                  const GlobOptions& options) {
  return on_mount(path, [&](const Mount& m, PathView p) {
    Result<GlobPage> page = m.file_system->glob(ctx, p, pattern, options);
    if (!page) return page;
    std::erase_if(page->entries, [](const GlobEntry& entry) { return is_internal_name(entry.name); });
    if (m.path.view().is_root()) return page;
    for (GlobEntry& entry : page->entries) entry.path.insert(0, m.path.text());
    return page;
  });
}

Result<void> MountTable::grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink) {
  return on_mount(path, [&](const Mount& m, PathView p) -> Result<void> {
    if (options.exclude_path.empty()) return m.file_system->grep(ctx, p, options, sink);
    const Result<Path> exclude = Path::parse(options.exclude_path);
    if (!exclude) return std::unexpected(exclude.error());
    if (path.is_within(*exclude)) return {};
    GrepOptions within = options;
    const bool applies = exclude->view().is_within(m.path);
    within.exclude_path = applies ? exclude->view().relative_to(m.path).text() : std::string_view{};
    return m.file_system->grep(ctx, p, within, sink);
  });
}

Result<bool> copy_within_mount(const MountTable& mounts, FileSystem& top, const Context& ctx, PathView from,
                               PathView to) {
  if (from == to) return true;
  const Result<bool> same = mounts.same_mount(from, to);
  if (!same || !*same) return same;
  const Result<WriteResult> copied = top.copy(ctx, from, to);
  if (!copied) return std::unexpected(copied.error());
  return true;
}

}  // namespace ragfs
