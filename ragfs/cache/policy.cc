#include "ragfs/cache/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "ragfs/fs/glob_pattern.h"

namespace ragfs {
namespace {

constexpr std::string_view kControlNames[] = {"enqueue",   "dequeue", "peek",   "ack",    "clear", "size",  "messages",
                                              "heartbeat", "lease",   "cursor", "offset", "pid",   "status"};

// A glob is written against absolute paths; patterns match without the leading '/'.
std::string_view without_slash(std::string_view pattern) {
  while (pattern.starts_with('/')) pattern.remove_prefix(1);
  return pattern;
}

bool is_below(std::string_view path, std::string_view ancestor) {
  if (ancestor == "/") return true;
  return path.starts_with(ancestor) && (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

bool any_above(const std::vector<std::string>& ancestors, std::string_view path) {
  return std::ranges::any_of(ancestors, [&](const std::string& ancestor) { return is_below(path, ancestor); });
}

Result<void> check_prefixes(std::string_view field, const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    if (!prefix.starts_with('/') || !Path::parse(prefix)) {
      return fail(ErrorCode::config,
                  fmt::format("{}: '{}' is not allowed; it must be an absolute path without '..'", field, prefix));
    }
  }
  return {};
}

}  // namespace

struct MountPolicy::Glob {
  GlobPattern pattern;
};

Result<void> CachePolicyConfig::validate() const {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  for (const auto& [field, value] :
       {std::pair{"max_file_size_bytes", max_file_size_bytes}, std::pair{"max_listing_bytes", max_listing_bytes}}) {
    if (value >= 1 && value <= kMostBytes) continue;
    return fail(ErrorCode::config, fmt::format("{}: {} is not allowed; it must be 1 to {}", field, value, kMostBytes));
  }
  if (auto ok = check_prefixes("cacheable_prefixes", cacheable_prefixes); !ok) return ok;
  if (auto ok = check_prefixes("bypass_prefixes", bypass_prefixes); !ok) return ok;
  if (auto ok = check_prefixes("permission_dependent_prefixes", permission_dependent_prefixes); !ok) return ok;
  if (auto ok = check_prefixes("negative_only_prefixes", negative_only_prefixes); !ok) return ok;
  if (auto ok = check_prefixes("no_prefetch_prefixes", no_prefetch_prefixes); !ok) return ok;
  for (const std::string& glob : bypass_globs) {
    if (const auto parsed = GlobPattern::parse(without_slash(glob)); !parsed) {
      return fail(ErrorCode::config,
                  fmt::format("bypass_globs: '{}' is not allowed; {}", glob, parsed.error().message));
    }
  }
  if (negative_ttl_ms != 0 && (negative_ttl_ms < 100 || negative_ttl_ms > 1'000)) {
    return fail(ErrorCode::config,
                fmt::format("negative_ttl_ms: {} is not allowed; it must be 0 (off) or 100 to 1000", negative_ttl_ms));
  }
  if (!negative_only_prefixes.empty() && negative_ttl_ms == 0) {
    return fail(ErrorCode::config, "negative_only_prefixes: needs negative_ttl_ms; without it nothing is remembered");
  }
  return {};
}

bool is_internal_lock_name(std::string_view name) {
  return name == ".path.ovlock" || name.starts_with(".exact.ovlock.");
}

bool is_lock_name(std::string_view name) {
  // Nearly every name is told apart by its ends.
  if (!name.ends_with('k') && !name.starts_with(".e")) return false;
  return name.ends_with(".lock") || name.ends_with(".lck") || is_internal_lock_name(name);
}

bool is_control_name(std::string_view name) {
  return std::ranges::find(kControlNames, name) != std::end(kControlNames);
}

std::vector<std::string> MountPolicy::resolve(const std::vector<std::string>& prefixes, PathView mount_path) {
  std::vector<std::string> result;
  for (const std::string& raw : prefixes) {
    const Result<Path> prefix = Path::parse(raw);
    if (!prefix) continue;  // validate() refuses it
    if (mount_path.is_within(prefix->view())) {
      result.emplace_back("/");
    } else if (prefix->view().is_within(mount_path)) {
      result.emplace_back(prefix->view().relative_to(mount_path).text());
    }
  }
  return result;
}

MountPolicy::MountPolicy(const CachePolicyConfig& config, PathView mount_path)
    : config_(config),
      mount_path_(mount_path.text()),
      cacheable_(resolve(config.cacheable_prefixes, mount_path)),
      bypass_(resolve(config.bypass_prefixes, mount_path)),
      permission_dependent_(resolve(config.permission_dependent_prefixes, mount_path)),
      negative_only_(resolve(config.negative_only_prefixes, mount_path)),
      no_prefetch_(resolve(config.no_prefetch_prefixes, mount_path)),
      has_rules_(!config.cacheable_prefixes.empty() || !bypass_.empty() || !permission_dependent_.empty() ||
                 !negative_only_.empty() || !config.bypass_globs.empty()) {
  for (const std::string& glob : config.bypass_globs) {
    if (auto parsed = GlobPattern::parse(without_slash(glob))) {
      globs_.push_back(std::make_unique<Glob>(Glob{*std::move(parsed)}));
    }
  }
}

MountPolicy::~MountPolicy() = default;

bool MountPolicy::always_bypasses(std::string_view name) {
  // The longest control name has nine letters and none has a dot, as nearly every cached file has.
  return name.size() <= 9 ? is_control_name(name) || is_lock_name(name) : is_lock_name(name);
}

bool MountPolicy::matches_glob(std::string_view path) const {
  if (globs_.empty()) return false;
  const Result<Path> absolute = Path::concat(PathView::from_normal(mount_path_), PathView::from_normal(path));
  if (!absolute || absolute->view().is_root()) return false;
  const std::string_view relative = absolute->view().text().substr(1);
  return std::ranges::any_of(globs_, [&](const auto& glob) { return glob->pattern.match(relative).matches; });
}

CacheClass MountPolicy::class_by_rules(std::string_view path) const {
  if (!config_.cacheable_prefixes.empty() && !any_above(cacheable_, path)) return CacheClass::bypass;
  if (any_above(bypass_, path) || matches_glob(path)) return CacheClass::bypass;
  if (any_above(permission_dependent_, path)) return CacheClass::permission_dependent;
  return any_above(negative_only_, path) ? CacheClass::negative_only : CacheClass::cacheable;
}

CacheClass MountPolicy::class_of(PathView path) const {
  return always_bypasses(path.name()) ? CacheClass::bypass : class_by_rules(path.text());
}

CacheDecision MountPolicy::cache_policy(PathView path, CacheOp op, const Context& ctx) const {
  const auto named = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, path.name()) != names.end();
  };
  CacheDecision decision;
  decision.path_class = class_of(path);
  const bool reads = op == CacheOp::read || op == CacheOp::list;
  if (decision.path_class == CacheClass::negative_only) {
    decision.may_hit = op == CacheOp::read && !ctx.bypass_cache;
    decision.negative_ttl_ms = op == CacheOp::read ? config_.negative_ttl_ms : 0;
  }
  if (decision.path_class != CacheClass::cacheable) return decision;
  decision.may_hit = op != CacheOp::write && !ctx.bypass_cache;
  decision.may_fill = op != CacheOp::stat;  // a stat is answered from files and listings, it leaves nothing itself
  decision.max_bytes = op == CacheOp::list ? config_.max_listing_bytes : config_.max_file_size_bytes;
  decision.preferred = op == CacheOp::list || named(config_.preferred_names);
  decision.may_prefetch = reads && !ctx.bypass_cache && !any_above(no_prefetch_, path.text());
  if (op == CacheOp::read && named(config_.negative_names)) decision.negative_ttl_ms = config_.negative_ttl_ms;
  return decision;
}

}  // namespace ragfs
