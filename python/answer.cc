#include "python/answer.h"

#include <fmt/format.h>
#include <string.h>

#include <cerrno>

namespace ragfs::python {
namespace {

std::string_view class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return "AGFSNotFoundError";
    case ErrorCode::already_exists: return "AGFSAlreadyExistsError";
    case ErrorCode::read_only:
    case ErrorCode::permission_denied: return "AGFSPermissionDeniedError";
    case ErrorCode::invalid_path: return "AGFSInvalidPathError";
    case ErrorCode::not_a_directory: return "AGFSNotADirectoryError";
    case ErrorCode::is_a_directory: return "AGFSIsADirectoryError";
    case ErrorCode::directory_not_empty: return "AGFSDirectoryNotEmptyError";
    case ErrorCode::invalid_operation: return "AGFSInvalidOperationError";
    case ErrorCode::full:
    case ErrorCode::too_large:
    case ErrorCode::io: return "AGFSIoError";
    case ErrorCode::plugin: return "AGFSPluginError";
    case ErrorCode::config: return "AGFSConfigError";
    case ErrorCode::mount_point_not_found: return "AGFSMountPointNotFoundError";
    case ErrorCode::mount_point_exists: return "AGFSMountPointExistsError";
    case ErrorCode::serialization: return "AGFSSerializationError";
    case ErrorCode::unavailable:
    case ErrorCode::network: return "AGFSNetworkError";
    case ErrorCode::timeout:
    case ErrorCode::would_block: return "AGFSTimeoutError";
    case ErrorCode::not_supported: return "AGFSNotSupportedError";
    case ErrorCode::lock_conflict: return "LockAcquisitionError";
    default: return "AGFSInternalError";
  }
}

Raised plugin_error(std::string_view text) { return {"AGFSPluginError", fmt::format("plugin error: {}", text)}; }

std::string os_text(int sys_errno) { return fmt::format("{} (os error {})", ::strerror(sys_errno), sys_errno); }

// What the original's local backend reports through its Plugin variant.
bool is_local_dialect(const Error& error, Call call, Raised& out) {
  const bool writes = call == Call::read || call == Call::write || call == Call::touch || call == Call::copy;
  if (error.code == ErrorCode::is_a_directory && writes) {
    out = plugin_error(fmt::format("is a directory: {}", error.message));
    return true;
  }
  if (call == Call::rename) {
    int number = 0;
    if (error.code == ErrorCode::directory_not_empty) number = ENOTEMPTY;
    if (error.code == ErrorCode::is_a_directory) number = EISDIR;
    if (error.code == ErrorCode::not_a_directory) number = ENOTDIR;
    if (error.code == ErrorCode::invalid_operation && error.message.find("into itself") != std::string::npos)
      number = EINVAL;
    if (number == 0) return false;
    out = plugin_error(fmt::format("failed to rename: {}", os_text(number)));
    if (number == ENOTEMPTY) out.type = "AGFSDirectoryNotEmptyError";
    return true;
  }
  if (error.code == ErrorCode::directory_not_empty && call == Call::remove) {
    out = {"AGFSDirectoryNotEmptyError", fmt::format("plugin error: directory not empty: {}", error.message)};
    return true;
  }
  if (error.code == ErrorCode::not_a_directory && call == Call::make_parents) {
    out = plugin_error(fmt::format("failed to create parent directories: {}", os_text(ENOTDIR)));
    return true;
  }
  if (error.code == ErrorCode::not_a_directory && call == Call::make_dir) {
    out = plugin_error(fmt::format("failed to create directory: {}", os_text(ENOTDIR)));
    return true;
  }
  if (error.code == ErrorCode::not_a_directory && (call == Call::write || call == Call::make)) {
    out = plugin_error(fmt::format("failed to {} file: {}", call == Call::make ? "create" : "open", os_text(ENOTDIR)));
    return true;
  }
  if (error.sys_errno == ENAMETOOLONG) {
    const char* what = call == Call::make ? "create file" : call == Call::make_dir ? "create directory" : "open file";
    out = plugin_error(fmt::format("failed to {}: {}", what, os_text(ENAMETOOLONG)));
    return true;
  }
  return false;
}

}  // namespace

Raised raised(const Error& error, std::string_view plugin, Call call) {
  Raised out;
  if (plugin == "localfs" && is_local_dialect(error, call, out)) return out;
  if (plugin == "memfs" && call == Call::remove && error.code == ErrorCode::directory_not_empty) {
    return {"AGFSIsADirectoryError", fmt::format("is a directory: {}", error.message)};
  }
  out.type = class_of(error.code);
  // A lock's own error names itself.
  out.message = error.code == ErrorCode::lock_conflict ? error.message : error.text();
  return out;
}

}  // namespace ragfs::python
