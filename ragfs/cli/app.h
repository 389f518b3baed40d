// The command line of the program: parsing, running, and describing it to documentation and shells.
//
// All use of the parser library is in app.cc. Thread-safety: one command at a time.
#pragma once

#include <string>
#include <vector>

#include "ragfs/cli/exit_code.h"
#include "ragfs/cli/session.h"

namespace ragfs::cli {

// Runs one command line (without the program's name): parse errors are reported and answer ExitCode::usage.
ExitCode run_command_line(Session& session, std::vector<std::string> arguments);

// The program: everything main() does. The process's exit code.
int run_program(int argc, char** argv);

struct OptionDescription {
  std::string names;  // "-l,--long", or "PATH" for a positional argument
  bool takes_value = false;
  bool positional = false;
  std::string meaning;
};

struct CommandDescription {
  std::string name;  // "cache stats"; "" for the program itself
  std::string summary;
  std::string usage;  // "ragfs ls [OPTIONS] [PATH]"
  std::vector<OptionDescription> options;
  std::vector<std::string> examples;
};

// The program first, then every command that help shows, in its order.
std::vector<CommandDescription> describe_commands();

}  // namespace ragfs::cli
