// The file operations of a client.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "python/client.h"
#include "python/lock_names.h"
#include "ragfs/fs/names.h"

namespace ragfs::python {
namespace {

bool is_missing(const Error& error) { return error.code == ErrorCode::not_found; }

std::strong_ordering compare(const FileInfo& a, const FileInfo& b, SortBy sort_by) {
  if (sort_by == SortBy::mtime && a.mtime_ns != b.mtime_ns) return a.mtime_ns <=> b.mtime_ns;
  return compare_listing_names(a.name, b.name);
}

// Directories first, whatever the order.
bool comes_before(const FileInfo& a, const FileInfo& b, SortBy sort_by, bool descending) {
  if (a.is_dir() != b.is_dir()) return a.is_dir();
  const auto order = compare(a, b, sort_by);
  return descending ? order > 0 : order < 0;
}

// The order of siblings in a depth-first listing, wanted otherwise than it came. Every child follows its directory.
class TreeSorter {
 public:
  TreeSorter(std::vector<TreeEntry> entries, SortBy sort_by, bool descending)
      : entries_(std::move(entries)), sort_by_(sort_by), descending_(descending) {}

  std::vector<TreeEntry> sorted() {
    size_t at = 0;
    emit(children(at, 0));
    return std::move(out_);
  }

 private:
  struct Node {
    size_t index;
    std::vector<Node> children;
  };

  static size_t depth(const TreeEntry& entry) { return static_cast<size_t>(std::ranges::count(entry.rel_path, '/')); }

  std::vector<Node> children(size_t& at, size_t level) {
    std::vector<Node> nodes;
    while (at < entries_.size() && depth(entries_[at]) == level) {
      const size_t own = at++;
      nodes.push_back({own, children(at, level + 1)});
    }
    std::ranges::stable_sort(nodes, [&](const Node& a, const Node& b) {
      return comes_before(entries_[a.index].info, entries_[b.index].info, sort_by_, descending_);
    });
    return nodes;
  }

  void emit(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      out_.push_back(std::move(entries_[node.index]));
      emit(node.children);
    }
  }

  std::vector<TreeEntry> entries_;
  const SortBy sort_by_;
  const bool descending_;
  std::vector<TreeEntry> out_;
};

template <typename T>
void cut(std::vector<T>& entries, uint64_t offset, std::optional<uint64_t> limit) {
  entries.erase(entries.begin(),
                entries.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(offset, entries.size())));
  if (limit && *limit < entries.size()) entries.resize(*limit);
}

}  // namespace

template <typename T>
Answer<T> Client::answer(Result<T> result, const Place& place, Call call) const {
  if (!result) return std::unexpected(raised(result.error(), place.plugin(), call));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return std::move(*result);
  }
}

Answer<LockBook::Hold> Client::lock(const Context& ctx, const std::vector<std::pair<const Place*, bool>>& wanted) {
  notice_fork();
  if (ctx.disable_auto_pathlock) return LockBook::Hold();
  std::vector<LockRequest> requests;
  for (const auto& [place, tree] : wanted) {
    if (place->mount.file_system->traits().control) continue;
    requests.push_back({std::string(place->path.text()), tree, {}});
  }
  if (requests.empty()) return LockBook::Hold();
  if (!ctx.lease_ref.empty()) {
    auto covered = locks_->check_covers(ctx.lease_ref, requests);
    if (!covered) return std::unexpected(raised(covered.error(), "", Call::other));
    return LockBook::Hold();
  }
  auto hold = locks_->hold(std::move(requests), static_cast<int64_t>(options_.lock_timeout_secs * 1000));
  if (!hold) return std::unexpected(raised(hold.error(), "", Call::other));
  return std::move(*hold);
}

template <typename Operation>
auto Client::with_parents(const Context& ctx, const Place& place, const Operation& operation) {
  auto result = operation();
  if (result || !is_missing(result.error()) || !makes_parents(ctx)) return result;
  if (place.mount.file_system->traits().control) return result;
  auto made = table_->ensure_parent_dirs(ctx, place.path, kDefaultDirMode);
  if (!made) {
    result = std::unexpected(std::move(made.error()));
    return result;
  }
  return operation();
}

std::optional<Bytes> Client::read_at_once(const Context& ctx, std::string_view path, uint64_t offset, uint64_t size) {
  Place place;
  if (!locate_cached(path, Call::read, place)) return std::nullopt;
  std::optional<Bytes> whole = place.mount.file_system->read_at_once(ctx, place.within());
  if (whole && (offset != 0 || size != 0)) whole = std::move(*whole).slice(offset, size == 0 ? SIZE_MAX : size);
  return whole;
}

std::optional<FileInfo> Client::stat_at_once(const Context& ctx, std::string_view path) {
  Place place;
  if (!locate_cached(path, Call::stat, place)) return std::nullopt;
  std::optional<FileInfo> info = place.mount.file_system->stat_at_once(ctx, place.within());
  if (info) place.show_mode(*info);
  return info;
}

bool Client::locate_cached(std::string_view path, Call call, Place& place) {
  if (!cached_reads_.load(std::memory_order_relaxed)) return false;
  notice_fork();
  return locate(path, call, place).has_value() && !place.mount.file_system->traits().control;
}

Answer<Bytes> Client::read(const Context& ctx, std::string_view path, uint64_t offset, uint64_t size) {
  Place place;
  if (auto located = locate(path, Call::read, place); !located) return std::unexpected(std::move(located.error()));
  return answer(place.mount.file_system->read(ctx, place.within(), offset, size), place, Call::read);
}

Answer<uint64_t> Client::write(const Context& ctx, std::string_view path, std::string_view data) {
  Place place;
  if (auto located = locate(path, Call::write, place); !located) return std::unexpected(std::move(located.error()));
  auto held = lock(ctx, {{&place, false}});
  if (!held) return std::unexpected(std::move(held.error()));
  auto written = with_parents(
      ctx, place, [&] { return place.mount.file_system->write(ctx, place.within(), data, 0, WriteFlag::create); });
  if (!written) return std::unexpected(raised(written.error(), place.plugin(), Call::write));
  return data.size();
}

Answer<void> Client::create(const Context& ctx, std::string_view path) {
  Place place;
  if (auto located = locate(path, Call::make, place); !located) return located;
  auto held = lock(ctx, {{&place, false}});
  if (!held) return std::unexpected(std::move(held.error()));
  return answer(with_parents(ctx, place, [&] { return place.mount.file_system->create(ctx, place.within()); }), place,
                Call::make);
}

Answer<void> Client::touch_once(const Context& ctx, const Place& place) {
  if (is_lock_file_name(place.path.name())) return refuse_lock_file(place.within());
  auto held = lock(ctx, {{&place, false}});
  if (!held) return std::unexpected(std::move(held.error()));
  FileSystem& fs = *place.mount.file_system;
  return answer(with_parents(ctx, place, [&] { return fs.touch(ctx, place.within()); }), place, Call::touch);
}

Answer<void> Client::touch(const Context& ctx, std::string_view path) {
  Place place;
  if (auto located = locate(path, Call::read, place); !located) return located;
  const auto info = place.mount.file_system->stat(ctx, place.within());
  if (info && info->is_dir() && place.plugin() != "queuefs") {
    return answer(Result<void>(fail(ErrorCode::is_a_directory, std::string(place.within().text()))), place,
                  Call::touch);
  }
  auto touched = touch_once(ctx, place);
  // The original writes a file again that it could not create, so what it says is that it could not read it.
  if (touched || info || place.plugin() == "queuefs") return touched;
  return raise("AGFSNotFoundError", fmt::format("not found: {}", place.within().text()));
}

Answer<void> Client::mkdir(const Context& ctx, std::string_view path, uint32_t mode) {
  Place place;
  if (auto located = locate(path, Call::make_dir, place); !located) return located;
  notice_fork();
  return answer(place.mount.file_system->mkdir(ctx, place.within(), mode), place, Call::make_dir);
}

Answer<void> Client::ensure_parent_dirs(const Context& ctx, std::string_view path, uint32_t mode) {
  Place place;
  if (auto located = locate(path, Call::make_parents, place); !located) return located;
  notice_fork();
  return answer(place.mount.file_system->ensure_parent_dirs(ctx, place.within(), mode), place, Call::make_parents);
}

Answer<void> Client::removed_as_asked(Result<void> result, std::string_view path, const Place& place, Call call) const {
  const bool control = place.mount.file_system->traits().control;
  if (!result && is_missing(result.error()) && !control)
    return raise("AGFSNotFoundError", fmt::format("not found: {}", path));
  return answer(std::move(result), place, call);
}

Answer<void> Client::remove(const Context& ctx, std::string_view path, bool recursive) {
  Place place;
  if (auto located = locate(path, Call::remove, place); !located) {
    if (located.error().type != "AGFSNotFoundError") return located;
    return raise("AGFSNotFoundError", fmt::format("not found: {}", path));
  }
  if (!recursive && !place.mount.file_system->traits().control) {
    const auto there = place.mount.file_system->stat(ctx, place.within());
    if (!there && is_missing(there.error())) return raise("AGFSNotFoundError", fmt::format("not found: {}", path));
  }
  auto held = lock(ctx, {{&place, recursive}});
  if (!held) return std::unexpected(std::move(held.error()));
  // Through the table: a removal's error names the path as the caller wrote it.
  if (recursive) return removed_as_asked(table_->remove_all(ctx, place.path), path, place, Call::remove_all);
  auto removed = table_->remove(ctx, place.path);
  if (!removed && removed.error().code == ErrorCode::directory_not_empty && lock_files_ != nullptr &&
      lock_files_->holds_all_of(place.path)) {
    // The caller's own lock keeps the directory from being empty.
    removed = table_->remove_all(ctx, place.path);
  }
  return removed_as_asked(std::move(removed), path, place, Call::remove);
}

Answer<FileInfo> Client::stat(const Context& ctx, std::string_view path) {
  Place place;
  if (auto located = locate(path, Call::stat, place); !located) return std::unexpected(std::move(located.error()));
  auto info = place.mount.file_system->stat(ctx, place.within());
  if (info) place.show_mode(*info);
  return answer(std::move(info), place, Call::stat);
}

Answer<void> Client::rename(const Context& ctx, std::string_view from, std::string_view to) {
  Place source;
  if (auto located = locate(from, Call::rename, source); !located) return located;
  Place target;
  if (auto located = locate(to, Call::rename, target); !located) return located;
  const auto moved = source.mount.file_system->stat(ctx, source.within());
  const bool is_dir = moved && moved->is_dir();
  const bool crosses = source.mount.path != target.mount.path;
  if (crosses && source.mount.file_system->traits().control) {
    return raise("AGFSInvalidOperationError", "invalid operation: Cannot rename across different mount points");
  }
  auto held = lock(ctx, {{&source, is_dir}, {&target, false}});
  if (!held) return std::unexpected(std::move(held.error()));
  if (crosses) {
    return raise("AGFSInvalidOperationError", "invalid operation: Cannot rename across different mount points");
  }
  if (source.plugin() == "memfs" && source.path != target.path) {
    // The original's memory backend replaces nothing.
    const auto there = table_->exists(ctx, target.path);
    if (there && *there && moved) {
      return raise("AGFSAlreadyExistsError", fmt::format("already exists: {}", target.within().text()));
    }
  }
  auto result = table_->rename(ctx, source.path, target.path);
  if (!result && is_missing(result.error()) && moved && makes_parents(ctx)) {
    auto made = table_->ensure_parent_dirs(ctx, target.path, kDefaultDirMode);
    if (!made) return answer(std::move(made), target, Call::make_parents);
    result = table_->rename(ctx, source.path, target.path);
  }
  if (result && lock_files_ != nullptr) lock_files_->moved(source.path, target.path);
  return answer(std::move(result), source, Call::rename);
}

Answer<bool> Client::copy_within_mount(const Context& ctx, std::string_view from, std::string_view to) {
  Place source;
  if (auto located = locate(from, Call::read, source); !located) return std::unexpected(std::move(located.error()));
  Place target;
  if (auto located = locate(to, Call::copy, target); !located) return std::unexpected(std::move(located.error()));
  if (source.path == target.path) return true;
  if (source.mount.path != target.mount.path) return false;
  auto held = lock(ctx, {{&target, false}});
  if (!held) return std::unexpected(std::move(held.error()));
  auto copied = table_->copy(ctx, source.path, target.path);
  if (copied) return true;
  const bool of_source = copied.error().message == source.within().text();
  return std::unexpected(raised(copied.error(), source.plugin(), of_source ? Call::other : Call::copy));
}

Answer<void> Client::chmod(const Context& ctx, std::string_view path, uint32_t mode) {
  Place place;
  if (auto located = locate(path, Call::other, place); !located) return located;
  notice_fork();
  return answer(place.mount.file_system->chmod(ctx, place.within(), mode), place, Call::other);
}

Answer<std::vector<FileInfo>> Client::list(const Context& ctx, std::string_view path, const ListOptions& options) {
  Place place;
  if (auto located = locate(path, Call::list, place); !located) return std::unexpected(std::move(located.error()));
  auto entries = table_->read_dir(ctx, place.path);
  if (!entries) return std::unexpected(raised(entries.error(), place.plugin(), Call::list));
  if (options.sort_by == SortBy::mtime || (options.sort_by == SortBy::name && options.descending)) {
    std::ranges::stable_sort(*entries, [&](const FileInfo& a, const FileInfo& b) {
      return comes_before(a, b, options.sort_by, options.descending);
    });
  }
  cut(*entries, options.offset, options.limit);
  for (FileInfo& info : *entries) place.show_mode(info);
  return std::move(*entries);
}

Answer<std::vector<TreeEntry>> Client::tree(const Context& ctx, std::string_view path, const TreeQuery& query) {
  Place place;
  if (auto located = locate(path, Call::list, place); !located) return std::unexpected(std::move(located.error()));
  TreeOptions options = query.options;
  const bool whole = query.sort_by != SortBy::none || query.directories_only;
  // What is sorted or left out here decides which nodes the limit is about.
  if (whole) options.node_limit.reset();
  if (options.node_limit && *options.node_limit > 0) *options.node_limit += query.offset;
  if (options.node_limit == uint64_t{0} && options.level_limit != uint64_t{0}) {
    // Nothing is to be listed; whether there is a directory is asked all the same.
    if (auto listed = table_->read_dir(ctx, place.path); !listed) {
      return std::unexpected(raised(listed.error(), place.plugin(), Call::list));
    }
  }
  auto entries = table_->tree(ctx, place.path, options);
  if (!entries) return std::unexpected(raised(entries.error(), place.plugin(), Call::list));
  if (query.directories_only) std::erase_if(*entries, [](const TreeEntry& entry) { return !entry.info.is_dir(); });
  if (query.sort_by != SortBy::none)
    *entries = TreeSorter(std::move(*entries), query.sort_by, query.descending).sorted();
  cut(*entries, query.offset, query.options.node_limit);
  for (TreeEntry& entry : *entries) place.show_mode(entry.info);
  return std::move(*entries);
}

Answer<void> Client::check_there(const Context& ctx, const Place& place) const {
  const auto info = place.mount.file_system->stat(ctx, place.within());
  if (!info) return std::unexpected(raised(info.error(), place.plugin(), Call::list));
  return {};
}

Answer<GlobPage> Client::glob(const Context& ctx, std::string_view path, std::string_view pattern,
                              const GlobOptions& options, bool has_token) {
  Place place;
  if (auto located = locate(path, Call::list, place); !located) return std::unexpected(std::move(located.error()));
  if (has_token && options.token.empty()) {
    // What is wrong with the rest comes first.
    auto without = table_->glob(ctx, place.path, pattern, options);
    if (!without) return answer(std::move(without), place, Call::list);
    if (auto there = check_there(ctx, place); !there) return std::unexpected(std::move(there.error()));
    return raise("AGFSInvalidOperationError", "invalid operation: empty continuation token");
  }
  auto page = table_->glob(ctx, place.path, pattern, options);
  const bool bad_token = !page && page.error().message.find("token") != std::string::npos;
  const bool is_local = place.plugin() == "localfs";
  if (bad_token || (page && page->entries.empty() && is_local)) {
    const auto info = place.mount.file_system->stat(ctx, place.within());
    if (!info) return std::unexpected(raised(info.error(), place.plugin(), Call::list));
    if (is_local && !info->is_dir()) {
      return answer(Result<GlobPage>(fail(ErrorCode::not_a_directory, std::string(place.within().text()))), place,
                    Call::list);
    }
  }
  return answer(std::move(page), place, Call::list);
}

Answer<std::vector<GrepMatch>> Client::grep(const Context& ctx, std::string_view path, GrepOptions options) {
  Place place;
  if (auto located = locate(path, Call::list, place); !located) return std::unexpected(std::move(located.error()));
  if (!options.exclude_path.empty()) {
    Place excluded;
    const bool known = locate(options.exclude_path, Call::list, excluded).has_value();
    options.exclude_path = known ? std::string(excluded.path.text()) : std::string();
  }
  std::vector<GrepMatch> matches;
  auto done = table_->grep(ctx, place.path, options, [&](GrepMatch&& match) {
    matches.push_back(std::move(match));
    return true;
  });
  const bool left_out = !options.exclude_path.empty() && matches.empty();
  if (done && !left_out) return matches;
  // The original's other backends look at the pattern first.
  const bool looks = place.plugin() == "localfs";
  if (auto there = check_there(ctx, place); looks && !there) return std::unexpected(std::move(there.error()));
  if (done) return matches;
  return std::unexpected(raised(done.error(), place.plugin(), Call::list));
}

}  // namespace ragfs::python
