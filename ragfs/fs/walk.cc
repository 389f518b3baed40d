#include "ragfs/fs/walk.h"

#include <algorithm>
#include <utility>

#include "ragfs/fs/names.h"

namespace ragfs {
namespace {

struct Child {
  FileInfo info;
  Path path;
  bool enter = false;
};

// A directory on the way from the root to where the walk stands.
struct Frame {
  std::vector<Child> children;
  size_t next = 0;
};

void sort_children(std::vector<FileInfo>& entries, WalkOrder order) {
  if (order == WalkOrder::directories_first) {
    sort_entries(entries);
  } else {
    std::ranges::sort(entries, {}, &FileInfo::name);
  }
}

class Walker {
 public:
  Walker(const Context& ctx, PathView root, const WalkRules& rules, const DirectorySource& source)
      : ctx_(ctx), root_(root), rules_(rules), source_(source) {}

  Result<void> run(const WalkVisitor& visit) {
    if (rules_.level_limit == 0) return {};
    if (Result<void> opened = open(root_); !opened) return opened;
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      if (frame.next == frame.children.size()) {
        frames_.pop_back();
        continue;
      }
      const Child& child = frame.children[frame.next++];
      const Result<bool> go_on = visit(item(child, frames_.size()));
      if (!go_on) return std::unexpected(go_on.error());
      if (!*go_on) return {};
      if (!child.enter) continue;
      // Copied: opening adds a frame, which may move this one.
      if (Result<void> opened = open(Path(child.path)); !opened) return opened;
    }
    return {};
  }

 private:
  WalkItem item(const Child& child, uint64_t depth) const {
    const std::string_view below = child.path.view().relative_to(root_).text();
    return {child.path.view(), below.substr(1), depth, &child.info};
  }

  bool enters(const Child& child, uint64_t depth) const {
    if (!child.info.is_dir() || (rules_.level_limit && depth >= *rules_.level_limit)) return false;
    return !rules_.enter || rules_.enter(item(child, depth));
  }

  // Lists `dir` into a new frame. A directory that is gone gives no frame.
  Result<void> open(PathView dir) {
    if (ctx_.deadline.expired()) return fail(ErrorCode::timeout, std::string(dir.text()));
    Result<std::vector<FileInfo>> entries = source_.list(dir);
    if (!entries) {
      const ErrorCode code = entries.error().code;
      const bool vanished = code == ErrorCode::not_found || code == ErrorCode::not_a_directory;
      if (vanished && !frames_.empty()) return {};
      return std::unexpected(std::move(entries.error()));
    }
    std::erase_if(*entries, [](const FileInfo& info) { return is_internal_name(info.name); });
    sort_children(*entries, rules_.order);
    Frame frame;
    frame.children.reserve(entries->size());
    const uint64_t depth = frames_.size() + 1;
    for (FileInfo& info : *entries) {
      Result<Path> path = Path::join(dir, info.name);
      if (!path) return std::unexpected(std::move(path.error()));
      Child child{std::move(info), std::move(*path), false};
      child.enter = enters(child, depth);
      frame.children.push_back(std::move(child));
    }
    announce(frame);
    frames_.push_back(std::move(frame));
    return {};
  }

  void announce(const Frame& frame) const {
    if (!source_.upcoming) return;
    std::vector<Path> paths;
    for (const Child& child : frame.children) {
      if (child.enter) paths.push_back(child.path);
    }
    if (!paths.empty()) source_.upcoming(paths);
  }

  const Context& ctx_;
  const PathView root_;
  const WalkRules& rules_;
  const DirectorySource& source_;
  std::vector<Frame> frames_;
};

}  // namespace

Result<void> walk(const Context& ctx, PathView root, const WalkRules& rules, const DirectorySource& source,
                  const WalkVisitor& visit) {
  return Walker(ctx, root, rules, source).run(visit);
}

Result<std::vector<TreeEntry>> walk_tree(const Context& ctx, PathView root, const TreeOptions& options,
                                         const DirectorySource& source) {
  std::vector<TreeEntry> entries;
  if (options.node_limit == 0) return entries;
  WalkRules rules;
  rules.order = WalkOrder::directories_first;
  rules.level_limit = options.level_limit;
  const Result<void> done = walk(ctx, root, rules, source, [&](const WalkItem& item) -> Result<bool> {
    const bool dropped = !options.show_hidden && !item.info->is_dir() && is_hidden_name(item.info->name);
    if (!dropped) entries.push_back({std::string(item.path.text()), std::string(item.rel_path), *item.info});
    return !options.node_limit || entries.size() < *options.node_limit;
  });
  if (!done) return std::unexpected(done.error());
  return entries;
}

}  // namespace ragfs
