// The program described: version, completion scripts, and the pages of the manual made from its own command line.
// Thread-safety: one command at a time.
#pragma once

#include <string>

#include "ragfs/cli/exit_code.h"
#include "ragfs/cli/session.h"

namespace ragfs::cli {

// The body of docs/cli.md and the page docs/ragfs.1.
std::string cli_markdown();
std::string cli_man_page();
// `shell` is bash, zsh or fish.
std::string completion_script(const std::string& shell);

ExitCode run_completion(Session& session, const std::string& shell);
ExitCode run_page(Session& session, const std::string& format);
// Paths of the tree that begin with `prefix`, a line each; never an error (a completion must not disturb).
ExitCode run_complete_paths(Session& session, const std::string& prefix);

}  // namespace ragfs::cli
