// Names of lock files and of everything else that the original's path locks make unique.
//
// Not for: locking (LockBook). Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace ragfs::python {

// The lock file of a directory: "/a/b" has "/a/b/.path.ovlock".
std::string directory_lock_path(std::string_view dir);
// The lock file beside a file or a path that does not exist: "/a/f" has "/a/.exact.ovlock.f.<16 hex of SHA-1 of /a/f>".
std::string sidecar_lock_path(std::string_view path);
// Whether a name (the last component) is one of these.
bool is_lock_file_name(std::string_view name);

}  // namespace ragfs::python
