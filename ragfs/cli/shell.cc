// shell: many commands in one process, so that its cache lives longer than one of them.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "ragfs/cli/app.h"
#include "ragfs/cli/commands.h"
#include "ragfs/cli/shell_words.h"

namespace ragfs::cli {
namespace {

ExitCode run_line(Session& session, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--root" || word == "--config" || word == "-c" || word.starts_with("--root=") ||
        word.starts_with("--config=")) {
      return session.console().report("shell", ErrorCode::invalid_argument,
                                      word + " belongs before `shell`: the tree is open already");
    }
    if (word == "--") break;
  }
  if (words[0] == "shell") {
    return session.console().report("shell", ErrorCode::invalid_argument, "this is the shell already");
  }
  const GlobalOptions before = session.options();  // options of a line hold for that line
  const ExitCode code = run_command_line(session, words);
  session.options() = before;
  session.console().set_json(before.json);
  return code;
}

}  // namespace

ExitCode run_shell(Session& session) {
  Console& console = session.console();
  if (session.in_shell()) return console.report("shell", ErrorCode::invalid_argument, "this is the shell already");
  if (auto instance = session.instance(); !instance) return console.report("shell", instance.error());
  session.set_in_shell();
  const bool prompt = console.out_is_terminal() && !console.json();
  if (prompt) console.err("commands as on the command line, without `ragfs`; --help lists them, exit ends\n");
  ExitCode code = ExitCode::ok;
  std::string line;
  for (;;) {
    if (prompt) console.err("ragfs> ");
    if (!std::getline(std::cin, line)) break;
    const auto words = split_words(line);
    if (!words) {
      code = console.report("shell", words.error());
      continue;
    }
    if (words->empty()) continue;
    const std::string& first = words->front();
    if (first == "exit" || first == "quit") break;
    if (first == "help") {
      code = run_line(session, {"--help"});
    } else {
      code = run_line(session, *words);
    }
    code = console.finish(code);
    if (console.out_closed()) break;
  }
  if (prompt) console.err("\n");
  return code;
}

}  // namespace ragfs::cli
