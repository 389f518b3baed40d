// MountPolicy: which paths of one mount may be cached, and how.
//
// cache_policy() tells what one call may do; bypasses() is the part of it that a hit asks. Prefixes and globs are
// written by operators as absolute paths; they are resolved against the mount once, here.
// Thread-safety: immutable after construction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"

namespace ragfs {

// Which whole-file writes are stored at once. Whatever is not stored is erased: the next read fills it.
enum class WriteAdmission : uint8_t {
  all,
  read_before,  // what this process has read and filled, and preferred names: an import leaves no trace
};

struct CachePolicyConfig {
  uint64_t max_file_size_bytes = 1 << 20;                  // larger files are never cached
  uint64_t max_listing_bytes = 1 << 20;                    // packed; larger listings are never cached
  std::vector<std::string> cacheable_prefixes;             // absolute paths; nothing else is cached. None: everything
  std::vector<std::string> bypass_prefixes;                // absolute paths; they and all below are never cached
  std::vector<std::string> bypass_globs;                   // matched against the absolute path
  std::vector<std::string> permission_dependent_prefixes;  // answers depend on who asks: never cached
  std::vector<std::string> negative_only_prefixes;         // never cached, but for the absence of any name there
  std::vector<std::string> no_prefetch_prefixes;
  std::vector<std::string> preferred_names = {".abstract.md", ".overview.md"};  // kept under pressure
  std::vector<std::string> negative_names = {".abstract.md", ".overview.md"};   // whose absence may be remembered
  int64_t negative_ttl_ms = 0;                                                  // 0 = off; else 100 to 1,000
  WriteAdmission write_admission = WriteAdmission::all;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

// Lock files (.path.ovlock, .exact.ovlock.*, *.lock, *.lck) and control files (enqueue, size, ...): never cached.
bool is_lock_name(std::string_view name);
bool is_control_name(std::string_view name);
// The lock files of RAGFS itself, which listings never show.
bool is_internal_lock_name(std::string_view name);

// What a path is, strongest first.
enum class CacheClass : uint8_t {
  bypass,                // lock and control files, configured prefixes and globs: never cached
  permission_dependent,  // the backend answers each caller differently: never cached
  negative_only,         // nothing but its absence is remembered
  cacheable,
};

// What a call asks for. `list` is about the listing of the path, `write` a whole-file write of it.
enum class CacheOp : uint8_t { read, list, stat, write };

// What one call may do with the cache.
struct CacheDecision {
  CacheClass path_class = CacheClass::bypass;
  bool may_hit = false;         // be answered from it, or join another caller's read
  bool may_fill = false;        // leave its answer there, if it is no larger than max_bytes
  uint64_t max_bytes = 0;       // of the payload
  bool preferred = false;       // what it leaves outlives others under pressure
  bool may_prefetch = false;    // other paths may be read ahead because of it
  int64_t negative_ttl_ms = 0;  // how long a true "not found" is remembered; 0 = not
};

class MountPolicy {
 public:
  // `config` must be valid; `mount_path` is where the backend is mounted.
  MountPolicy(const CachePolicyConfig& config, PathView mount_path);
  ~MountPolicy();

  // True when nothing of `path` (relative to the mount) may be cached.
  bool bypasses(PathView path) const { return always_bypasses(path.name()) || (has_rules_ && is_excluded(path)); }
  // What the call that `ctx` belongs to may do. The mount's own switches (cache off, shared backends) come on top.
  CacheDecision cache_policy(PathView path, CacheOp op, const Context& ctx) const;
  // Some paths may be answered with their absence though nothing else of them is cached.
  bool has_negative_only() const { return !negative_only_.empty() && config_.negative_ttl_ms != 0; }
  const CachePolicyConfig& config() const { return config_; }

 private:
  struct Glob;
  static std::vector<std::string> resolve(const std::vector<std::string>& prefixes, PathView mount_path);
  static bool always_bypasses(std::string_view name);
  // By what the configuration names.
  bool is_excluded(PathView path) const { return class_by_rules(path.text()) != CacheClass::cacheable; }
  CacheClass class_by_rules(std::string_view path) const;
  bool matches_glob(std::string_view path) const;
  CacheClass class_of(PathView path) const;

  const CachePolicyConfig config_;
  const std::string mount_path_;
  // Relative to the mount; "/" = all of it.
  std::vector<std::string> cacheable_;
  std::vector<std::string> bypass_;
  std::vector<std::string> permission_dependent_;
  std::vector<std::string> negative_only_;
  std::vector<std::string> no_prefetch_;
  std::vector<std::unique_ptr<Glob>> globs_;
  const bool has_rules_;  // last: made from those above
};

}  // namespace ragfs
