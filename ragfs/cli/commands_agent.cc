// ls --agent and tree --agent: a directory with the abstracts of the directories in it.
#include <fmt/format.h>

#include <algorithm>

#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"
#include "ragfs/fs/agent_listing.h"

namespace ragfs::cli {
namespace {

void print_text(Console& console, std::string_view text, const std::string& indent) {
  while (!text.empty() && !console.out_closed()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::string shown = console.out_is_terminal() ? printable(line) : std::string(line);
    console.line(indent + console.styled(Style::dim, shown));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void print_entries(Console& console, const std::vector<AgentEntry>& entries) {
  for (const AgentEntry& entry : entries) {
    if (console.out_closed()) return;
    const auto depth = static_cast<size_t>(std::ranges::count(entry.rel_path, '/'));
    const std::string indent(2 * depth, ' ');
    const std::string name = console.name(entry.info.name);
    console.line(indent + (entry.info.is_dir() ? console.styled(Style::directory, name) + "/" : name));
    if (entry.abstract) print_text(console, entry.abstract->view(), indent + "    ");
  }
}

void write_entries(JsonWriter& json, const std::vector<AgentEntry>& entries) {
  for (const AgentEntry& entry : entries) {
    json.begin_object().name("path", entry.path).name("rel_path", entry.rel_path);
    write_info(json, entry.info);
    if (entry.abstract) json.name("abstract", entry.abstract->view());
    if (entry.error) json.field("abstract_error", entry.error->text());
    json.end_object();
  }
}

}  // namespace

ExitCode run_agent_listing(Session& session, const AgentCommandOptions& options) {
  const char* const command = options.command;
  return with_path(session, command, options.path, [&](Instance& instance, const Context& context, PathView path) {
    AgentListingOptions ask;
    ask.levels = options.levels;
    ask.show_hidden = options.all;
    if (options.limit) ask.node_limit = *options.limit;
    const auto entries = list_with_abstracts(instance.fs(), context, path, ask);
    if (!entries) return report_path(session, command, path, entries.error());
    Console& console = session.console();
    if (console.json()) {
      JsonWriter json;
      json.begin_object().name("path", path.text()).key("entries").begin_array();
      write_entries(json, *entries);
      console.line(json.end_array().end_object().text());
    } else {
      print_entries(console, *entries);
    }
    ExitCode code = ExitCode::ok;
    for (const AgentEntry& entry : *entries) {
      if (!entry.error) continue;
      code = worse(code, report_path(session, command, PathView::from_normal(entry.path), *entry.error));
    }
    return code;
  });
}

}  // namespace ragfs::cli
