#include "ragfs/base/error.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace ragfs {
namespace {

struct CodeNames {
  ErrorCode code;
  std::string_view name;
  std::string_view label;
};

constexpr std::array<CodeNames, kErrorCodeCount> kNames = {{
    {ErrorCode::not_found, "not_found", "not found"},
    {ErrorCode::already_exists, "already_exists", "already exists"},
    {ErrorCode::permission_denied, "permission_denied", "permission denied"},
    {ErrorCode::invalid_path, "invalid_path", "invalid path"},
    {ErrorCode::not_a_directory, "not_a_directory", "not a directory"},
    {ErrorCode::is_a_directory, "is_a_directory", "is a directory"},
    {ErrorCode::directory_not_empty, "directory_not_empty", "directory not empty"},
    {ErrorCode::invalid_operation, "invalid_operation", "invalid operation"},
    {ErrorCode::io, "io", "I/O error"},
    {ErrorCode::plugin, "plugin", "plugin error"},
    {ErrorCode::config, "config", "configuration error"},
    {ErrorCode::mount_point_not_found, "mount_point_not_found", "mount point not found"},
    {ErrorCode::mount_point_exists, "mount_point_exists", "mount point already exists"},
    {ErrorCode::serialization, "serialization", "serialization error"},
    {ErrorCode::network, "network", "network error"},
    {ErrorCode::timeout, "timeout", "operation timed out"},
    {ErrorCode::would_block, "would_block", "operation would block"},
    {ErrorCode::context_missing, "context_missing", "filesystem context missing"},
    {ErrorCode::internal, "internal", "internal error"},
    {ErrorCode::unavailable, "unavailable", "provider unavailable"},
    {ErrorCode::invalid_argument, "invalid_argument", "invalid argument"},
    {ErrorCode::invalid_data, "invalid_data", "invalid data"},
    {ErrorCode::too_large, "too_large", "too large"},
    {ErrorCode::full, "full", "no space left"},
    {ErrorCode::cache_not_updated, "cache_not_updated", "cache not updated"},
    {ErrorCode::read_only, "read_only", "read-only"},
    {ErrorCode::lock_conflict, "lock_conflict", "lock conflict"},
    {ErrorCode::stale_handle, "stale_handle", "stale handle"},
    {ErrorCode::not_supported, "not_supported", "not supported"},
    {ErrorCode::cancelled, "cancelled", "cancelled"},
}};

constexpr bool names_in_order() {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return true;
}
static_assert(names_in_order(), "kNames must list every ErrorCode in its order");

ErrorCode code_from_errno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT: return ErrorCode::not_found;
    case EEXIST: return ErrorCode::already_exists;
    case EACCES:
    case EPERM: return ErrorCode::permission_denied;
    case ENOTDIR: return ErrorCode::not_a_directory;
    case EISDIR: return ErrorCode::is_a_directory;
    case ENOTEMPTY: return ErrorCode::directory_not_empty;
    case ENAMETOOLONG:
    case ELOOP: return ErrorCode::invalid_path;
    case EROFS: return ErrorCode::read_only;
    case ENOSPC:
    case EDQUOT: return ErrorCode::full;
    case EAGAIN: return ErrorCode::would_block;
    case ETIMEDOUT: return ErrorCode::timeout;
    case EXDEV: return ErrorCode::invalid_operation;
    default: return ErrorCode::io;
  }
}

}  // namespace

std::string_view kind_name(ErrorCode code) { return kNames[static_cast<size_t>(code)].name; }
std::string_view kind_label(ErrorCode code) { return kNames[static_cast<size_t>(code)].label; }

std::string Error::text() const { return fmt::format("{}: {}", kind_label(code), message); }

Error error_from_errno(int sys_errno, std::string_view what) {
  const ErrorCode code = code_from_errno(sys_errno);
  // The codes that name a path say it alone, as the interface does; the rest say what the system said.
  if (code == ErrorCode::not_found || code == ErrorCode::already_exists) return {code, std::string(what), sys_errno};
  return {code, fmt::format("{}: {}", what, ::strerror(sys_errno)), sys_errno};
}

}  // namespace ragfs
