// From a stat to what the tree shows. Not for: system calls. Thread-safety: pure functions.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "ragfs/fs/file_system.h"

namespace ragfs {

inline int64_t to_ns(const struct timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

// Modes are constants: the tree has no users, and RAGFS on localfs shows these whatever the host says.
FileInfo info_of(std::string_view name, const struct stat& status);
FileMeta meta_of(const struct stat& status, bool via_symlink);
std::string version_of(const struct stat& status);

// Whether nothing happened to the file between two stats of one descriptor.
bool same_state(const struct stat& a, const struct stat& b);

}  // namespace ragfs
