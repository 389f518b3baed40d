// ls, tree, stat, glob: commands that show what is there.
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"
#include "ragfs/fs/agent_listing.h"

namespace ragfs::cli {
namespace {

Style style_of(FileKind kind) {
  return kind == FileKind::directory ? Style::directory : kind == FileKind::other ? Style::other : Style::plain;
}

std::string shown(const Console& console, const FileInfo& info) {
  return console.styled(style_of(info.kind), console.name(info.name)) + (info.is_dir() && info.name != "/" ? "/" : "");
}

void print_entries(Console& console, const std::vector<FileInfo>& entries, const LsOptions& options) {
  size_t width = 1;
  const auto size_text = [&](const FileInfo& info) {
    return options.human ? human_bytes(info.size) : fmt::format("{}", info.size);
  };
  if (options.long_form) {
    for (const FileInfo& info : entries) width = std::max(width, size_text(info).size());
  }
  for (const FileInfo& info : entries) {
    if (console.out_closed()) return;
    if (options.long_form) {
      console.out(fmt::format("{}  {:>{}}  {}  ", mode_text(info), size_text(info), width, local_time(info.mtime_ns)));
    }
    console.line(shown(console, info));
  }
}

void print_tree(Console& console, const std::vector<TreeEntry>& entries) {
  // last[i]: does the ancestor at depth i have no later sibling? Entries come depth first, so it is known from the end.
  std::vector<bool> is_last(entries.size(), true);
  std::vector<bool> seen;  // at each depth, walking backwards, since the last entry of a smaller depth
  for (size_t i = entries.size(); i-- > 0;) {
    const auto depth = static_cast<size_t>(std::count(entries[i].rel_path.begin(), entries[i].rel_path.end(), '/'));
    if (seen.size() > depth + 1) seen.resize(depth + 1);
    seen.resize(depth + 1, false);
    is_last[i] = !seen[depth];
    seen[depth] = true;
  }
  std::vector<bool> above;
  for (size_t i = 0; i < entries.size() && !console.out_closed(); ++i) {
    const auto depth = static_cast<size_t>(std::count(entries[i].rel_path.begin(), entries[i].rel_path.end(), '/'));
    above.resize(depth);
    std::string lead;
    for (const bool last : above) lead += last ? "    " : "|   ";
    console.line(lead + (is_last[i] ? "`-- " : "|-- ") + shown(console, entries[i].info));
    above.push_back(is_last[i]);
  }
}

}  // namespace

ExitCode run_ls(Session& session, const LsOptions& options) {
  if (options.agent) return run_agent_listing(session, {.command = "ls", .path = options.path});
  return with_path(session, "ls", options.path, [&](Instance& instance, const Context& context, PathView path) {
    auto entries = instance.fs().read_dir(context, path);
    if (!entries && entries.error().code == ErrorCode::not_a_directory) {
      // A file is listed as itself.
      auto info = instance.fs().stat(context, path);
      if (!info) return report_path(session, "ls", path, info.error());
      entries = std::vector<FileInfo>{*info};
    }
    if (!entries) return report_path(session, "ls", path, entries.error());
    sort_entries(*entries);
    Console& console = session.console();
    if (!console.json()) {
      print_entries(console, *entries, options);
      return ExitCode::ok;
    }
    JsonWriter json;
    json.begin_object().name("path", path.text()).key("entries").begin_array();
    for (const FileInfo& info : *entries) {
      json.begin_object();
      write_info(json, info);
      json.end_object();
    }
    json.end_array().end_object();
    console.line(json.text());
    return ExitCode::ok;
  });
}

ExitCode run_tree(Session& session, const TreeCommandOptions& options) {
  if (options.agent) {
    const uint64_t levels = options.levels.value_or(AgentListingOptions::kMostLevels);
    return run_agent_listing(
        session,
        {.command = "tree", .path = options.path, .levels = levels, .limit = options.limit, .all = options.all});
  }
  return with_path(session, "tree", options.path, [&](Instance& instance, const Context& context, PathView path) {
    TreeOptions ask;
    ask.show_hidden = options.all;
    ask.node_limit = options.limit;
    ask.level_limit = options.levels;
    const auto entries = instance.fs().tree(context, path, ask);
    if (!entries) return report_path(session, "tree", path, entries.error());
    const auto directories = static_cast<uint64_t>(
        std::count_if(entries->begin(), entries->end(), [](const TreeEntry& entry) { return entry.info.is_dir(); }));
    Console& console = session.console();
    if (!console.json()) {
      console.line(console.styled(Style::directory, console.name(path.text())));
      print_tree(console, *entries);
      console.line(fmt::format("\n{}, {}", counted(directories, "directory", "directories"),
                               counted(entries->size() - directories, "file", "files")));
      return ExitCode::ok;
    }
    JsonWriter json;
    json.begin_object().name("path", path.text()).field("directories", directories);
    json.field("files", entries->size() - directories).key("entries").begin_array();
    for (const TreeEntry& entry : *entries) {
      json.begin_object().name("path", entry.path).name("rel_path", entry.rel_path);
      write_info(json, entry.info);
      json.end_object();
    }
    json.end_array().end_object();
    console.line(json.text());
    return ExitCode::ok;
  });
}

ExitCode run_stat(Session& session, const StatOptions& options) {
  Console& console = session.console();
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  const auto show = [&](Instance& instance, const Context& context, std::span<const PathView> paths) {
    ExitCode code = ExitCode::ok;
    const auto infos = instance.fs().stat_many(context, paths);
    for (size_t i = 0; i < infos.size(); ++i) {
      const Result<FileInfo>& info = infos[i];
      if (!info) {
        code = worse(code, report_path(session, "stat", paths[i], info.error()));
      } else if (console.json()) {
        json.begin_object().name("path", paths[i].text());
        write_info(json, *info);
        json.end_object();
      } else {
        console.out(fmt::format("{}\n  kind   {}\n  size   {} ({})\n  mode   {:04o} ({})\n  mtime  {}\n",
                                console.name(paths[i].text()), kind_text(info->kind), info->size,
                                human_bytes(info->size), info->mode & 07777, mode_text(*info),
                                rfc3339(info->mtime_ns)));
      }
    }
    return code;
  };
  const ExitCode code = with_paths(session, "stat", options.paths, 1'000, show);
  if (console.json()) console.line(json.end_array().end_object().text());
  return code;
}

ExitCode run_glob(Session& session, const GlobCommandOptions& options) {
  return with_path(session, "glob", options.path, [&](Instance& instance, const Context& context, PathView path) {
    GlobOptions ask;
    ask.show_hidden = options.all;
    ask.level_limit = options.levels;
    ask.page_size = options.limit;
    const auto page = instance.fs().glob(context, path, options.pattern, ask);
    if (!page) return report_path(session, "glob", path, page.error());
    Console& console = session.console();
    if (console.json()) {
      JsonWriter json;
      json.begin_object().name("path", path.text()).name("pattern", options.pattern).key("entries").begin_array();
      for (const GlobEntry& entry : page->entries) {
        json.begin_object().name("path", entry.path).name("rel_path", entry.rel_path).name("name", entry.name);
        json.field("kind", entry.is_dir ? "directory" : "file").end_object();
      }
      json.end_array().field("more", !page->next_token.empty()).end_object();
      console.line(json.text());
    } else {
      for (const GlobEntry& entry : page->entries) {
        if (console.out_closed()) break;
        console.line(console.styled(entry.is_dir ? Style::directory : Style::plain, console.name(entry.path)));
      }
      if (!page->next_token.empty()) console.warn("glob", "there is more; raise --limit");
    }
    return page->entries.empty() ? ExitCode::negative : ExitCode::ok;
  });
}

}  // namespace ragfs::cli
