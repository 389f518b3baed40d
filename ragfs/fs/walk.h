// Walking a tree of directories: the one walk that tree, glob and grep are made of.
//
// It asks a DirectorySource for listings, so that a backend, a cache of listings and a view over mounts give the same
// results. Not for: walks that change what they walk over.
// Thread-safety: free functions without shared state; a call runs on the caller's thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

struct DirectorySource {
  // Direct children of a directory, in no order. Errors: not_found, not_a_directory, and any other.
  std::function<Result<std::vector<FileInfo>>(PathView)> list;
  // May be empty. Hears which directories will be listed soon, in order: a chance to fetch their listings in one
  // request. The paths are borrowed for the call.
  std::function<void(std::span<const Path>)> upcoming;
};

enum class WalkOrder : uint8_t {
  directories_first,  // the order of listings (sort_entries)
  by_name,            // bytes of the name: a whole walk is then in component-wise order of the paths
};

// What a visitor sees; valid during the call.
struct WalkItem {
  PathView path;              // absolute in the walked file system
  std::string_view rel_path;  // relative to the root, without a leading '/'
  uint64_t depth = 0;         // 1 = direct child of the root
  const FileInfo* info = nullptr;
};

struct WalkRules {
  WalkOrder order = WalkOrder::by_name;
  std::optional<uint64_t> level_limit;  // deepest items that are visited; 0 visits nothing
  // May be empty = enter all. Whether to list this directory. Must give the same answer for the same item.
  std::function<bool(const WalkItem&)> enter;
};

// False ends the walk with success; an error ends it with that error.
using WalkVisitor = std::function<Result<bool>(const WalkItem&)>;

// Visits everything below `root` but the root, depth first, a directory before what is in it. Internal names are left
// out. A directory below the root that vanished since its parent was listed counts as empty; any other failure to list
// ends the walk. Errors: those of the listings; timeout when ctx.deadline passes on the way.
Result<void> walk(const Context& ctx, PathView root, const WalkRules& rules, const DirectorySource& source,
                  const WalkVisitor& visit);

// FileSystem::tree over a source of listings.
Result<std::vector<TreeEntry>> walk_tree(const Context& ctx, PathView root, const TreeOptions& options,
                                         const DirectorySource& source);

}  // namespace ragfs
