// MountPolicy: which paths of one mount may be cached, and how.
//
// Classes, strongest first: bypass (never cached: lock and control files, configured prefixes and globs,
// permission-dependent paths), cacheable, and with it the hints preferred, negative and no_prefetch. Prefixes and globs
// are written by operators as absolute paths; they are resolved against the mount once, here.
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/path.h"

namespace ragfs {

struct CachePolicyConfig {
  uint64_t max_file_size_bytes = 1 << 20;                  // larger files are never cached
  uint64_t max_listing_bytes = 1 << 20;                    // packed; larger listings are never cached
  std::vector<std::string> bypass_prefixes;                // absolute paths; they and all below are never cached
  std::vector<std::string> bypass_globs;                   // matched against the absolute path
  std::vector<std::string> permission_dependent_prefixes;  // answers depend on who asks: never cached
  std::vector<std::string> no_prefetch_prefixes;
  std::vector<std::string> preferred_names = {".abstract.md", ".overview.md"};  // kept under pressure
  std::vector<std::string> negative_names = {".abstract.md", ".overview.md"};   // whose absence may be remembered
  int64_t negative_ttl_ms = 0;                                                  // 0 = off; else 100 to 1,000

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

// Lock files (.path.ovlock, .exact.ovlock.*, *.lock, *.lck) and control files (enqueue, size, ...): never cached.
bool is_lock_name(std::string_view name);
bool is_control_name(std::string_view name);
// The lock files of RAGFS itself, which listings never show.
bool is_internal_lock_name(std::string_view name);

class MountPolicy {
 public:
  // `config` must be valid; `mount_path` is where the backend is mounted.
  MountPolicy(const CachePolicyConfig& config, PathView mount_path);
  ~MountPolicy();

  // True when nothing of `path` (relative to the mount) may be cached.
  bool bypasses(PathView path) const;
  bool is_preferred(PathView path) const;
  bool remembers_absence(PathView path) const;
  bool allows_prefetch(PathView path) const;
  const CachePolicyConfig& config() const { return config_; }

 private:
  struct Glob;
  static std::vector<std::string> resolve(const std::vector<std::string>& prefixes, PathView mount_path);

  const CachePolicyConfig config_;
  const std::string mount_path_;
  std::vector<std::string> bypass_;  // relative to the mount; "/" = all of it
  std::vector<std::string> no_prefetch_;
  std::vector<std::unique_ptr<Glob>> globs_;
};

}  // namespace ragfs
