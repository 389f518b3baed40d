// VerifyReport: what a comparison of the cache with its backends found (`ragfs cache verify`).
//
// Not for: repairing; CachedFileSystem::verify() refuses what is wrong. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ragfs {

struct VerifyReport {
  static constexpr size_t kMostPaths = 100;
  static constexpr size_t kMostDirectories = 1'000'000;  // that wait to be looked into; more are left out

  uint64_t looked_at = 0;                // paths of the backends
  uint64_t objects = 0;                  // of them cached, and compared
  uint64_t unreadable = 0;               // of those: the backend could not be read
  uint64_t left_out = 0;                 // directories past kMostDirectories: not looked into
  uint64_t wrong = 0;                    // not what the backend holds
  std::vector<std::string> wrong_paths;  // the first kMostPaths of them
};

}  // namespace ragfs
