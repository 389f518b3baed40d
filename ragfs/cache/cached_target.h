// CachedFileSystem::Target: a path of one call, as the backend knows it and as the cache knows it.
//
// Private to CachedFileSystem's source files. For a nested mount the cache's path has the mount's prefix in front;
// elsewhere both are the caller's own text and nothing is copied.
// Thread-safety: belongs to one call.
#pragma once

#include <string>

#include "ragfs/cache/cached_file_system.h"

namespace ragfs {

class CachedFileSystem::Target {
 public:
  Target(const CachedFileSystem& fs, PathView path_in)
      : path(path_in), joined_(join(fs.prefix_, path_in)), at(*fs.identity_, identity_path()) {}
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  // The path in the backend's identity: what keys and records are made of.
  PathView identity_path() const { return joined_.empty() ? path : PathView::from_normal(joined_); }

  const PathView path;  // what the backend is asked for

 private:
  static std::string join(const std::string& prefix, PathView path) {
    if (prefix.empty()) return {};
    return path.is_root() ? prefix : prefix + std::string(path.text());
  }
  const std::string joined_;

 public:
  const CachePath at;
};

}  // namespace ragfs
