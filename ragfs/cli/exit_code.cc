#include "ragfs/cli/exit_code.h"

#include <array>

namespace ragfs::cli {

std::span<const ExitCodeRow> exit_code_table() {
  static constexpr std::array<ExitCodeRow, 10> kTable{{
      {ExitCode::ok, "ok", "Done; the answer is yes."},
      {ExitCode::negative, "negative", "Not found, no match, or a check that says no."},
      {ExitCode::usage, "usage", "The command line is wrong, a path or pattern included."},
      {ExitCode::config, "config", "The configuration file is missing or wrong."},
      {ExitCode::permission, "permission", "Permission denied, or the tree is read-only for this process."},
      {ExitCode::io, "io", "A backend failed, a file could not be read or written, or space ran out."},
      {ExitCode::cache, "cache", "The cache provider could not be used, or the cache could not be updated (strict)."},
      {ExitCode::lock, "lock", "Somebody else holds a lock, or a wait ended before its turn came."},
      {ExitCode::conflict, "conflict", "What is there does not fit: exists already, not empty, file or directory."},
      {ExitCode::unsupported, "unsupported", "This build or this backend cannot do it."},
  }};
  return kTable;
}

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
    case ErrorCode::mount_point_not_found: return ExitCode::negative;
    case ErrorCode::invalid_path:
    case ErrorCode::invalid_operation:
    case ErrorCode::invalid_argument: return ExitCode::usage;
    case ErrorCode::config: return ExitCode::config;
    case ErrorCode::permission_denied:
    case ErrorCode::read_only: return ExitCode::permission;
    case ErrorCode::io:
    case ErrorCode::plugin:
    case ErrorCode::serialization:
    case ErrorCode::network:
    case ErrorCode::internal:
    case ErrorCode::too_large:
    case ErrorCode::full:
    case ErrorCode::context_missing:
    case ErrorCode::stale_handle:
    case ErrorCode::cancelled: return ExitCode::io;
    case ErrorCode::unavailable:
    case ErrorCode::invalid_data:
    case ErrorCode::cache_not_updated: return ExitCode::cache;
    case ErrorCode::timeout:
    case ErrorCode::would_block:
    case ErrorCode::lock_conflict: return ExitCode::lock;
    case ErrorCode::already_exists:
    case ErrorCode::mount_point_exists:
    case ErrorCode::not_a_directory:
    case ErrorCode::is_a_directory:
    case ErrorCode::directory_not_empty: return ExitCode::conflict;
    case ErrorCode::not_supported: return ExitCode::unsupported;
  }
  return ExitCode::io;
}

std::string_view hint_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return "look one level up with `ls`, or find it with `glob`";
    case ErrorCode::mount_point_not_found: return "`config show` lists the mounts";
    case ErrorCode::is_a_directory: return "it is a directory: use `ls`, or `rm -r` and `cp -r` for all below it";
    case ErrorCode::not_a_directory: return "it is a file: use `cat` or `stat`";
    case ErrorCode::directory_not_empty: return "use `rm -r` to remove all below it as well";
    case ErrorCode::already_exists: return "choose another name, or remove the old one first";
    case ErrorCode::permission_denied: return "check the owner and mode of the backend's files";
    case ErrorCode::read_only: return "another process writes here, or the disk is read-only";
    case ErrorCode::full: return "the disk or memory behind this mount is full: free some and try again";
    case ErrorCode::config: return "`config check` shows all problems, `config schema` what is allowed";
    case ErrorCode::unavailable: return "is the cache provider running? `doctor` checks it";
    case ErrorCode::cache_not_updated: return "the change WAS made: do not repeat an append; `doctor` checks the cache";
    case ErrorCode::lock_conflict:
    case ErrorCode::would_block:
    case ErrorCode::timeout: return "try again later; --timeout sets how long to wait";
    default: return "";
  }
}

}  // namespace ragfs::cli
