#include "ragfs/cli/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ragfs/cli/app.h"
#include "ragfs/cli/command_support.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/text.h"
#include "ragfs/config/factories.h"

namespace ragfs::cli {
namespace {

constexpr const char* kCacheNote =
    "A run of `ragfs` is one process and its cache ends with it. `cache on`, `off`, `flush` and `stats` act on that\n"
    "process only; inside `ragfs shell` they act on all commands of the shell.\n";

// roff takes a leading dot or quote as a request, and a backslash as an escape.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

bool is_literal(const std::string& line) { return line.starts_with("  "); }

}  // namespace

std::string cli_markdown() {
  std::string out = "## Exit codes\n\n| code | name | meaning |\n|---|---|---|\n";
  for (const ExitCodeRow& row : exit_code_table()) {
    out += fmt::format("| {} | {} | {} |\n", static_cast<int>(row.code), row.name, row.meaning);
  }
  out += "\n## The cache of a process\n\n";
  out += kCacheNote;
  for (const CommandDescription& command : describe_commands()) {
    out += command.name.empty() ? "\n## Options of every command\n" : fmt::format("\n## ragfs {}\n", command.name);
    if (!command.name.empty()) out += fmt::format("\n{}.\n\n    {}\n", command.summary, command.usage);
    if (!command.options.empty()) out += "\n| argument | meaning |\n|---|---|\n";
    for (const OptionDescription& option : command.options) {
      out += fmt::format("| `{}` | {} |\n", option.names, option.meaning);
    }
    if (command.name.empty()) continue;
    bool literal = false;
    for (const std::string& line : command.examples) {
      if (line.starts_with("examples:")) continue;
      if (is_literal(line) != literal) out += "\n";
      literal = is_literal(line);
      out += literal ? "    " + line.substr(2) + "\n" : line + "\n";
    }
  }
  return out;
}

std::string cli_man_page() {
  std::string out = fmt::format(
      ".\\\" Made by `ragfs page man`.\n.TH RAGFS 1 \"\" \"ragfs {}\" \"User Commands\"\n.SH NAME\n"
      "ragfs \\- files of an agent context database, through a coherent cache\n.SH SYNOPSIS\n"
      ".B ragfs\n[\\-\\-config FILE | \\-\\-root DIR] [OPTIONS] COMMAND [ARGUMENTS]\n.SH OPTIONS\n",
      RAGFS_VERSION);
  bool commands = false;
  for (const CommandDescription& command : describe_commands()) {
    if (!command.name.empty()) {
      if (!commands) out += ".SH COMMANDS\n";
      commands = true;
      out += fmt::format(".SS {}\n{}.\n", roff(command.usage), roff(command.summary));
    }
    for (const OptionDescription& option : command.options) {
      out += fmt::format(".TP\n.B {}\n{}\n", roff(option.names), roff(option.meaning));
    }
    if (command.name.empty()) continue;
    out += ".PP\n";
    bool literal = false;
    for (const std::string& line : command.examples) {
      if (is_literal(line) != literal) out += is_literal(line) ? ".nf\n" : ".fi\n";
      literal = is_literal(line);
      out += roff(line) + "\n";
    }
    if (literal) out += ".fi\n";
  }
  out += ".SH EXIT STATUS\n";
  for (const ExitCodeRow& row : exit_code_table()) {
    out += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(row.code), roff(row.meaning));
  }
  out +=
      ".SH ENVIRONMENT\n.TP\n.B RAGFS_CONFIG\nThe configuration file, when \\-\\-config is not given.\n"
      ".TP\n.B NO_COLOR\nNo colours when it is set.\n.SH FILES\n.TP\n.B ./ragfs.yaml\n"
      "The configuration file, when nothing else names one.\n";
  return out;
}

ExitCode run_page(Session& session, const std::string& format) {
  session.console().out(format == "man" ? cli_man_page() : cli_markdown());
  return ExitCode::ok;
}

ExitCode run_completion(Session& session, const std::string& shell) {
  Console& console = session.console();
  if (console.json()) {
    JsonWriter json;
    console.line(
        json.begin_object().field("shell", shell).field("script", completion_script(shell)).end_object().text());
    return ExitCode::ok;
  }
  console.out(completion_script(shell));
  return ExitCode::ok;
}

ExitCode run_complete_paths(Session& session, const std::string& prefix) {
  const size_t slash = prefix.rfind('/');
  const std::string above = slash == std::string::npos ? "/" : prefix.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? prefix : prefix.substr(slash + 1);
  const auto path = Path::parse(above);
  auto instance = session.instance();
  if (!path || !instance) return ExitCode::ok;
  Context context = session.context();
  context.deadline = Deadline::in_ms(2'000);
  auto entries = (*instance)->fs().read_dir(context, *path);
  if (!entries) return ExitCode::ok;
  sort_entries(*entries);
  for (const FileInfo& info : *entries) {
    if (!info.name.starts_with(name) || printable(info.name) != info.name) continue;
    session.console().line(above + info.name + (info.is_dir() ? "/" : ""));
  }
  return ExitCode::ok;
}

ExitCode run_version(Session& session) {
  Console& console = session.console();
  if (console.json()) {
    JsonWriter json;
    json.begin_object().field("version", RAGFS_VERSION).field("compiler", __VERSION__);
    json.key("backends").begin_array();
    for (const std::string& name : known_backends()) json.value(name);
    json.end_array().key("providers").begin_array();
    for (const std::string& name : known_providers()) json.value(name);
    json.end_array().end_object();
    console.line(json.text());
    return ExitCode::ok;
  }
  console.line(fmt::format("ragfs {}\nbackends   {}\nproviders  {}\ncompiler   {}", RAGFS_VERSION,
                           fmt::join(known_backends(), ", "), fmt::join(known_providers(), ", "), __VERSION__));
  return ExitCode::ok;
}

}  // namespace ragfs::cli
