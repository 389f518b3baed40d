// The one error type of the project.
//
// Error carries a code that a program can branch on, a sentence that a person can act on, and, where a system call
// failed, its errno. Result<T> is std::expected<T, Error>: exceptions do not cross a public function.
// Not for: control flow of the hot path. A cache miss is a value (an empty optional), never an Error.
//
// Thread-safety: values; no shared state.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace ragfs {

// Kinds of failure. The first block is what a user of the file system sees (the text of kind_label() and the order
// follow the RAGFS interface); the second block is what a cache provider answers; the third is this project's own.
enum class ErrorCode : uint8_t {
  not_found,
  already_exists,
  permission_denied,
  invalid_path,
  not_a_directory,
  is_a_directory,
  directory_not_empty,
  invalid_operation,
  io,
  plugin,
  config,
  mount_point_not_found,
  mount_point_exists,
  serialization,
  network,
  timeout,
  would_block,
  context_missing,
  internal,
  // providers
  unavailable,       // the engine could not be asked (connection refused, breaker open, closed)
  invalid_argument,  // the key, the value or a limit is wrong: retrying cannot help
  invalid_data,      // the engine answered something that is not a value
  too_large,         // the value exceeds what the engine takes
  full,              // no space, and nothing could be evicted
  // ours
  cache_not_updated,  // strict mode: the backend WAS changed, the cache could not be told; do not repeat an append
  read_only,          // this process may not mutate (another writer holds the namespace)
  lock_conflict,      // a path lock is held by somebody else
  stale_handle,       // the thing this handle named was renamed, removed or unmounted
  not_supported,      // a feature that this build or this backend does not have
  cancelled,
};

inline constexpr size_t kErrorCodeCount = static_cast<size_t>(ErrorCode::cancelled) + 1;

// "not_found": for metrics, JSON and logs.
std::string_view kind_name(ErrorCode code);
// "not found": the prefix of Error::text(), as the RAGFS interface words it ("I/O error", "operation timed out", ...).
std::string_view kind_label(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // the argument: usually the path, or a sentence that says what to do
  int sys_errno = 0;    // errno of the failing system call, 0 where none was involved

  // "<label>: <message>", what a user reads.
  std::string text() const;
};

template <typename T>
using Result = std::expected<T, Error>;

// `return fail(ErrorCode::not_found, path)`.
inline std::unexpected<Error> fail(ErrorCode code, std::string message, int sys_errno = 0) {
  return std::unexpected<Error>(Error{code, std::move(message), sys_errno});
}

// Maps an errno to the code a user expects (ENOENT not_found, EIO io, ...). `what` names the path or the step.
// An errno with no code of its own becomes `io`, never `not_found`.
Error error_from_errno(int sys_errno, std::string_view what);

}  // namespace ragfs
