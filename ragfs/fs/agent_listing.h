// list_with_abstracts: a directory as an agent looks at it: its entries, and of each directory the abstract.
//
// One listing for each level of the tree, then the `.abstract.md` of every directory, all in calls for many paths: over
// a cache in another process that is one round trip a level and one for each batch of abstracts, whatever the number of
// directories. Entries come in the order of tree(). Not for: what a directory's abstract says of itself (read it), or
// for writing (agent_context.h). Thread-safety: a free function; runs on the caller's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/fs/file_system.h"

namespace ragfs {

inline constexpr std::string_view kAbstractName = ".abstract.md";
inline constexpr std::string_view kOverviewName = ".overview.md";

struct AgentListingOptions {
  static constexpr uint64_t kMostLevels = 64;

  uint64_t levels = 1;           // below the directory: 1 = its own entries; at most kMostLevels are gone into
  uint64_t node_limit = 10'000;  // most entries, the first in order
  uint64_t abstract_bytes =
      64 * 1024;             // most of each abstract that is given, cut before a character that would not fit
  bool show_hidden = false;  // hidden files too; hidden directories are always shown, as in tree()
};

struct AgentEntry {
  std::string path;      // absolute in the file system that was asked
  std::string rel_path;  // relative to the directory
  FileInfo info;
  std::optional<Bytes> abstract;  // of a directory; absent where it has none
  std::optional<Error> error;     // why a directory's abstract could not be read; absent when it just has none
};

// Errors: not_found, not_a_directory, and any other of a listing; timeout when ctx.deadline passes between two levels.
// A directory that vanished since its parent was listed counts as empty.
Result<std::vector<AgentEntry>> list_with_abstracts(FileSystem& fs, const Context& ctx, PathView directory,
                                                    const AgentListingOptions& options = {});

}  // namespace ragfs
