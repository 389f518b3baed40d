// cat and grep: commands that read what files hold.
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"

namespace ragfs::cli {
namespace {

void write_lines(JsonWriter& json, std::string_view key, const std::vector<GrepLine>& lines) {
  json.key(key).begin_array();
  for (const GrepLine& line : lines)
    json.begin_object().field("line", line.line).name("content", line.content).end_object();
  json.end_array();
}

// A match names its file relative to where the search began; people and scripts want a path they can use.
std::string absolute(PathView root, const std::string& file) {
  if (file == ".") return std::string(root.text());
  return root.is_root() ? "/" + file : fmt::format("{}/{}", root.text(), file);
}

// "FILE:LINE:text", and lines around it as "FILE-LINE-text", as grep does.
class MatchPrinter {
 public:
  MatchPrinter(Console& console, PathView root, bool with_context)
      : console_(console), root_(root), with_context_(with_context) {}

  ~MatchPrinter() { print_pending(UINT64_MAX); }

  void print(GrepMatch&& match) {
    // Lines after a match wait: the next match may be one of them.
    print_pending(match.file == last_file_ ? match.line : UINT64_MAX);
    const uint64_t first = match.before.empty() ? match.line : match.before.front().line;
    const bool same = match.file == last_file_;
    if (with_context_ && last_line_ != 0 && (!same || first > last_line_ + 1)) console_.line("--");
    if (!same) last_line_ = 0;
    last_file_ = match.file;
    for (const GrepLine& line : match.before) print_line(line.line, line.content, '-');
    print_line(match.line, match.content, ':');
    pending_ = std::move(match.after);
  }

 private:
  void print_pending(uint64_t below) {
    for (const GrepLine& line : pending_) {
      if (line.line < below) print_line(line.line, line.content, '-');
    }
    pending_.clear();
  }

  void print_line(uint64_t line, std::string_view content, char mark) {
    if (line <= last_line_) return;  // shown already
    last_line_ = line;
    const std::string text = console_.out_is_terminal() ? printable(content) : std::string(content);
    console_.line(fmt::format("{}{}{}{}{}", console_.styled(Style::match, console_.name(absolute(root_, last_file_))),
                              mark, console_.styled(Style::good, fmt::format("{}", line)), mark, text));
  }

  Console& console_;
  const PathView root_;
  const bool with_context_;
  std::string last_file_;
  uint64_t last_line_ = 0;
  std::vector<GrepLine> pending_;
};

}  // namespace

ExitCode run_cat(Session& session, const CatOptions& options) {
  Console& console = session.console();
  JsonWriter json;
  json.begin_object().key("files").begin_array();
  const bool whole = options.offset == 0 && options.size == 0;
  const auto show = [&](Instance& instance, const Context& context, std::span<const PathView> paths) {
    ExitCode code = ExitCode::ok;
    std::vector<Result<Bytes>> contents;
    if (whole) {
      contents = instance.fs().read_many(context, paths);
    } else {
      for (const PathView path : paths) {
        contents.push_back(instance.fs().read(context, path, options.offset, options.size));
      }
    }
    for (size_t i = 0; i < contents.size(); ++i) {
      const Result<Bytes>& data = contents[i];
      if (!data) {
        code = worse(code, report_path(session, "cat", paths[i], data.error()));
      } else if (console.json()) {
        json.begin_object().name("path", paths[i].text()).field("size", data->size());
        json.name("content", data->view()).end_object();
      } else {
        console.out(data->view());
      }
    }
    return code;
  };
  constexpr size_t kFilesInMemory = 16;
  const ExitCode code = with_paths(session, "cat", options.paths, kFilesInMemory, show);
  if (console.json()) console.line(json.end_array().end_object().text());
  return code;
}

ExitCode run_grep(Session& session, const GrepCommandOptions& options) {
  return with_path(session, "grep", options.path, [&](Instance& instance, const Context& context, PathView path) {
    GrepOptions ask;
    ask.pattern = options.pattern;
    ask.recursive = !options.flat;
    ask.case_insensitive = options.ignore_case;
    ask.node_limit = options.limit;
    ask.level_limit = options.levels;
    ask.before_context = std::max(options.before, options.context);
    ask.after_context = std::max(options.after, options.context);
    if (!options.exclude.empty()) {
      const auto exclude = Path::parse(options.exclude);
      if (!exclude) return session.console().report("grep", exclude.error());
      ask.exclude_path = exclude->text();
    }
    Console& console = session.console();
    MatchPrinter printer(console, path, ask.before_context + ask.after_context > 0);
    JsonWriter json;
    uint64_t count = 0;
    json.begin_object().name("path", path.text()).name("pattern", options.pattern).key("matches").begin_array();
    const auto found = instance.fs().grep(context, path, ask, [&](GrepMatch&& match) {
      ++count;
      if (!console.json()) {
        printer.print(std::move(match));
        return !console.out_closed();
      }
      json.begin_object()
          .name("path", absolute(path, match.file))
          .name("file", match.file)
          .field("line", match.line)
          .name("content", match.content);
      if (ask.before_context > 0) write_lines(json, "before", match.before);
      if (ask.after_context > 0) write_lines(json, "after", match.after);
      json.end_object();
      return true;
    });
    if (!found) return report_path(session, "grep", path, found.error());
    if (console.json()) console.line(json.end_array().field("count", count).end_object().text());
    return count == 0 ? ExitCode::negative : ExitCode::ok;
  });
}

}  // namespace ragfs::cli
