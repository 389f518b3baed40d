// glob over a source of listings, in pages.
//
// Entries come in component-wise order of rel_path. A continuation token is "<hex of SHA-256 of the query>:<offset>":
// it names how many entries were given, so it survives restarts, and a page repeats or skips entries only where files
// came or went meanwhile. Not for: matching single paths (glob_pattern.h).
// Thread-safety: free functions without shared state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ragfs/fs/file_system.h"
#include "ragfs/fs/walk.h"

namespace ragfs {

// FileSystem::glob over a source of listings. Directories that no match can be below are not listed.
// Errors: invalid_operation `empty glob pattern`, `invalid glob pattern: ...`, `page_size must be positive`, and those
// of parse_glob_token; not_found, not_a_directory of the root.
Result<GlobPage> walk_glob(const Context& ctx, PathView root, std::string_view pattern, const GlobOptions& options,
                           const DirectorySource& source);

// Which query a token belongs to.
struct GlobScope {
  std::string_view path;
  std::string_view pattern;
  bool show_hidden = false;
  std::optional<uint64_t> level_limit;
};

std::string make_glob_token(const GlobScope& scope, uint64_t offset);

// The offset. Errors: invalid_operation `empty continuation token`, `invalid continuation token`,
// `continuation token scope mismatch`.
Result<uint64_t> parse_glob_token(const GlobScope& scope, std::string_view token);

}  // namespace ragfs
