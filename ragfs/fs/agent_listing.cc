#include "ragfs/fs/agent_listing.h"

#include <algorithm>
#include <utility>

#include "ragfs/fs/names.h"

namespace ragfs {
namespace {

constexpr size_t kAtOnce = 1'000;  // listings or abstracts of one call: bounds what is in memory beside the answer

struct Node {
  Path path;
  FileInfo info;
  std::vector<size_t> children;  // in the next level
};
using Level = std::vector<Node>;

class Collector {
 public:
  Collector(FileSystem& fs, const Context& ctx, PathView root, const AgentListingOptions& options)
      : fs_(fs), ctx_(ctx), root_(root), options_(options) {}

  // Level by level. Of each, as many entries as are asked for in all: the first ones in order are among them.
  Result<void> collect() {
    levels_.push_back({Node{Path(root_), FileInfo{.kind = FileKind::directory}, {}}});
    const uint64_t most = std::min(options_.levels, AgentListingOptions::kMostLevels);
    for (uint64_t depth = 0; depth < most && !levels_.back().empty(); ++depth) {
      if (ctx_.deadline.expired()) return fail(ErrorCode::timeout, std::string(root_.text()));
      Level next;
      if (auto listed = list_level(levels_.back(), depth == 0, next); !listed) return listed;
      levels_.push_back(std::move(next));
    }
    return {};
  }

  std::vector<AgentEntry> in_order() {
    std::vector<AgentEntry> entries;
    append_below(0, 0, entries);
    return entries;
  }

 private:
  Result<void> list_level(Level& level, bool is_root, Level& next) {
    std::vector<size_t> directories;
    for (size_t i = 0; i < level.size(); ++i) {
      if (level[i].info.is_dir()) directories.push_back(i);
    }
    for (size_t from = 0; from < directories.size() && (is_root || next.size() < options_.node_limit);
         from += kAtOnce) {
      const size_t count = std::min(kAtOnce, directories.size() - from);
      std::vector<PathView> paths;
      for (size_t i = 0; i < count; ++i) paths.push_back(level[directories[from + i]].path);
      std::vector<Result<std::vector<FileInfo>>> listings;
      if (is_root) {
        listings.push_back(fs_.read_dir(ctx_, root_));
      } else {
        listings = fs_.read_dir_many(ctx_, paths);
      }
      for (size_t i = 0; i < count; ++i) {
        if (auto added = add_children(level[directories[from + i]], std::move(listings[i]), is_root, next); !added) {
          return added;
        }
      }
    }
    return {};
  }

  Result<void> add_children(Node& parent, Result<std::vector<FileInfo>> listing, bool is_root, Level& next) const {
    if (!listing) {
      const ErrorCode code = listing.error().code;
      const bool vanished = code == ErrorCode::not_found || code == ErrorCode::not_a_directory;
      if (vanished && !is_root) return {};
      return std::unexpected(std::move(listing.error()));
    }
    std::erase_if(*listing, [&](const FileInfo& info) {
      const bool dropped = !options_.show_hidden && !info.is_dir() && is_hidden_name(info.name);
      return dropped || is_internal_name(info.name);
    });
    sort_entries(*listing);
    for (FileInfo& info : *listing) {
      if (next.size() >= options_.node_limit) break;
      Result<Path> path = Path::join(parent.path, info.name);
      if (!path) return std::unexpected(std::move(path.error()));
      parent.children.push_back(next.size());
      next.push_back({*std::move(path), std::move(info), {}});
    }
    return {};
  }

  void append_below(size_t depth, size_t index, std::vector<AgentEntry>& entries) {
    for (const size_t child : levels_[depth][index].children) {
      if (entries.size() >= options_.node_limit) return;
      Node& node = levels_[depth + 1][child];
      const std::string_view rel_path = node.path.view().relative_to(root_).text().substr(1);
      entries.push_back({node.path.text(), std::string(rel_path), node.info, std::nullopt, std::nullopt});
      append_below(depth + 1, child, entries);
    }
  }

  FileSystem& fs_;
  const Context& ctx_;
  const PathView root_;
  const AgentListingOptions& options_;
  std::vector<Level> levels_;
};

// The first bytes of `text`, without a character of UTF-8 that would be cut in two.
Bytes cut(Bytes text, uint64_t most) {
  if (text.size() <= most) return text;
  constexpr int kMostContinuations = 3;
  size_t end = most;
  const auto is_continuation = [&](size_t at) { return (static_cast<unsigned char>(text.view()[at]) & 0xC0) == 0x80; };
  for (int i = 0; i < kMostContinuations && end > 0 && is_continuation(end); ++i) --end;
  return std::move(text).slice(0, end);
}

void add_abstracts(FileSystem& fs, const Context& ctx, std::vector<AgentEntry>& entries, uint64_t most_bytes) {
  std::vector<size_t> owners;
  std::vector<Path> paths;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].info.is_dir()) continue;
    Result<Path> path = Path::join(PathView::from_normal(entries[i].path), kAbstractName);
    if (!path) continue;  // too long for any file
    owners.push_back(i);
    paths.push_back(*std::move(path));
  }
  for (size_t from = 0; from < paths.size(); from += kAtOnce) {
    const std::vector<PathView> some(paths.begin() + static_cast<ptrdiff_t>(from),
                                     paths.begin() + static_cast<ptrdiff_t>(std::min(paths.size(), from + kAtOnce)));
    std::vector<Result<Bytes>> abstracts = fs.read_many(ctx, some);
    for (size_t i = 0; i < some.size(); ++i) {
      AgentEntry& entry = entries[owners[from + i]];
      if (abstracts[i]) {
        entry.abstract = cut(*std::move(abstracts[i]), most_bytes);
      } else if (abstracts[i].error().code != ErrorCode::not_found &&
                 abstracts[i].error().code != ErrorCode::not_a_directory) {
        entry.error = std::move(abstracts[i].error());
      }
    }
  }
}

}  // namespace

Result<std::vector<AgentEntry>> list_with_abstracts(FileSystem& fs, const Context& ctx, PathView directory,
                                                    const AgentListingOptions& options) {
  Collector collector(fs, ctx, directory, options);
  if (auto collected = collector.collect(); !collected) return std::unexpected(std::move(collected.error()));
  std::vector<AgentEntry> entries = collector.in_order();
  add_abstracts(fs, ctx, entries, options.abstract_bytes);
  return entries;
}

}  // namespace ragfs
