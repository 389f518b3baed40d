#include "ragfs/fs/grep.h"

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "ragfs/fs/ignore_rules.h"
#include "ragfs/fs/line_search.h"
#include "ragfs/fs/names.h"

namespace ragfs {
namespace {

constexpr uint64_t kReadBytes = uint64_t{4} << 20;
constexpr uint64_t kMaxIgnoreFileBytes = uint64_t{1} << 20;

bool vanished(const Error& error) {
  return error.code == ErrorCode::not_found || error.code == ErrorCode::is_a_directory ||
         error.code == ErrorCode::not_a_directory;
}

class Grep {
 public:
  Grep(const Context& ctx, PathView root, const GrepOptions& options, const GrepStyle& style, const GrepSource& source,
       const GrepSink& sink, const LinePattern& pattern)
      : ctx_(ctx), root_(root), options_(options), style_(style), source_(source), sink_(sink), pattern_(pattern) {
    left_ = options.node_limit.value_or(std::numeric_limits<uint64_t>::max());
    // A path that is not in its one spelling excludes nothing.
    if (PathView::is_normal(options.exclude_path)) exclude_ = PathView::from_normal(options.exclude_path);
  }

  Result<void> run() {
    if (left_ == 0 || is_excluded(root_)) return {};
    const Result<FileInfo> info = source_.stat(root_);
    if (!info) return std::unexpected(info.error());
    if (!info->is_dir()) {
      const Result<bool> searched = search(root_, ".");
      return searched ? Result<void>{} : std::unexpected(searched.error());
    }
    WalkRules rules;
    rules.order = WalkOrder::by_name;
    rules.level_limit = options_.level_limit;
    if (!options_.recursive && rules.level_limit != 0) rules.level_limit = 1;
    rules.enter = [this](const WalkItem& item) { return !is_left_out(item); };
    DirectorySource directories;
    directories.list = [this](PathView dir) { return list(dir); };
    directories.upcoming = source_.directories.upcoming;
    return walk(ctx_, root_, rules, directories, [this](const WalkItem& item) -> Result<bool> {
      if (item.info->kind != FileKind::file || is_left_out(item)) return true;
      return search(item.path, item.rel_path);
    });
  }

 private:
  // The rules found in one directory; .ignore is asked before .gitignore.
  struct DirectoryRules {
    IgnoreRules ignore;
    IgnoreRules gitignore;
  };

  bool is_excluded(PathView path) const { return exclude_ && path.is_within(*exclude_); }

  bool is_left_out(const WalkItem& item) const {
    if (is_excluded(item.path)) return true;
    if (style_.skip_hidden && is_hidden_name(item.info->name)) return true;
    return style_.ignore_files && is_ignored(item.path, item.info->is_dir());
  }

  // The nearest directory with a verdict decides; there, .ignore before .gitignore.
  bool is_ignored(PathView path, bool is_dir) const {
    if (rules_.empty()) return false;
    for (const auto& verdict_of : {&DirectoryRules::ignore, &DirectoryRules::gitignore}) {
      for (PathView dir = path; dir != root_;) {
        dir = dir.parent();
        const auto found = rules_.find(dir.text());
        if (found == rules_.end()) continue;
        const IgnoreRules::Verdict verdict =
            (found->second.*verdict_of).judge(path.relative_to(dir).text().substr(1), is_dir);
        if (verdict != IgnoreRules::Verdict::none) return verdict == IgnoreRules::Verdict::ignore;
      }
    }
    return false;
  }

  Result<std::vector<FileInfo>> list(PathView dir) {
    Result<std::vector<FileInfo>> entries = source_.directories.list(dir);
    if (!entries) {
      const bool pass = style_.skip_unreadable && entries.error().code == ErrorCode::permission_denied && dir != root_;
      return pass ? Result<std::vector<FileInfo>>{std::in_place} : std::move(entries);
    }
    if (!style_.ignore_files) return entries;
    // Rules of directories that the walk has left cannot be asked for any more.
    std::erase_if(rules_, [&](const auto& known) { return !dir.is_within(PathView::from_normal(known.first)); });
    DirectoryRules found;
    for (const FileInfo& info : *entries) {
      if (info.kind != FileKind::file) continue;
      if (info.name == ".gitignore") found.gitignore = load_rules(dir, info.name);
      if (info.name == ".ignore") found.ignore = load_rules(dir, info.name);
    }
    if (!found.ignore.empty() || !found.gitignore.empty()) rules_.emplace(dir.text(), std::move(found));
    return entries;
  }

  // An ignore file that cannot be read ignores nothing.
  IgnoreRules load_rules(PathView dir, std::string_view name) const {
    const Result<Path> path = Path::join(dir, name);
    if (!path) return {};
    const Result<Bytes> text = source_.read(*path, 0, kMaxIgnoreFileBytes);
    return text ? IgnoreRules::parse(text->view()) : IgnoreRules();
  }

  // Searches one file. False: the search is over.
  Result<bool> search(PathView path, std::string_view label) {
    const LineSearchOptions options{options_.before_context, options_.after_context, style_.skip_binary,
                                    style_.decode_bom};
    LineSearch search(pattern_, options, std::string(label), left_, sink_);
    uint64_t offset = 0;
    while (true) {
      if (ctx_.deadline.expired()) return fail(ErrorCode::timeout, std::string(path.text()));
      Result<Bytes> piece = source_.read(path, offset, kReadBytes);
      if (!piece) {
        const ErrorCode code = piece.error().code;
        const bool pass = vanished(piece.error()) || (style_.skip_unreadable && code == ErrorCode::permission_denied);
        if (!pass || path == root_) return std::unexpected(std::move(piece.error()));
        break;
      }
      if (!search.feed(piece->view()) || piece->size() < kReadBytes) break;
      offset += piece->size();
    }
    search.finish();
    left_ -= search.found();
    return left_ > 0 && !search.stopped();
  }

  const Context& ctx_;
  const PathView root_;
  const GrepOptions& options_;
  const GrepStyle& style_;
  const GrepSource& source_;
  const GrepSink& sink_;
  const LinePattern& pattern_;
  std::optional<PathView> exclude_;
  uint64_t left_ = 0;  // matches that may still be given
  std::map<std::string, DirectoryRules, std::less<>> rules_;
};

}  // namespace

Result<void> walk_grep(const Context& ctx, PathView root, const GrepOptions& options, const GrepStyle& style,
                       const GrepSource& source, const GrepSink& sink) {
  const Result<LinePattern> pattern = LinePattern::compile(options.pattern, options.case_insensitive);
  if (!pattern) return std::unexpected(pattern.error());
  return Grep(ctx, root, options, style, source, sink, *pattern).run();
}

}  // namespace ragfs
