// ExitCode: what the program tells the shell. One table serves the program, its help, its tests and docs/cli.md.
// Thread-safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "ragfs/base/error.h"

namespace ragfs::cli {

enum class ExitCode : int {
  ok = 0,
  negative = 1,     // it works, and the answer is no
  usage = 2,        // the command line is wrong
  config = 3,       // the configuration is wrong
  permission = 4,   // not allowed
  io = 5,           // a backend or a file failed
  cache = 6,        // the cache or its provider failed
  lock = 7,         // somebody else holds a lock, or the wait for one ended
  conflict = 8,     // what is there does not fit (exists already, not empty, wrong kind)
  unsupported = 9,  // this build or this backend cannot do it
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view name;
  std::string_view meaning;
};

// In the order of the numbers, without gaps.
std::span<const ExitCodeRow> exit_code_table();
ExitCode exit_code_of(ErrorCode code);

// What the user can do about an error; "" where the message says all.
std::string_view hint_for(ErrorCode code);

// The exit code of several steps: the first that is not ok.
inline ExitCode worse(ExitCode so_far, ExitCode next) { return so_far == ExitCode::ok ? next : so_far; }

}  // namespace ragfs::cli
