// write_context: what an agent's writer stores together: a directory's content, its abstract and its overview.
//
// Written in one call of write_many(): over a cache all values are stored with one atomic put where the provider has
// it, and the listing of the directory is given up once. Not for: other sets of files (write_many itself), or for
// making the three appear at one moment: readers may see one before the others, as they would without a cache.
// Thread-safety: a free function; runs on the caller's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/fs/agent_listing.h"

namespace ragfs {

struct ContextFiles {
  std::string_view content_name = "content.md";
  std::optional<std::string_view> content;
  std::optional<std::string_view> abstract;
  std::optional<std::string_view> overview;
};

struct WrittenFile {
  Path path;
  Result<WriteResult> result;
};

// Makes the directory and its parents where they are missing, then writes those of the files that are given, content
// first; each is tried whatever became of the others. Errors, before anything is written: those of
// ensure_parent_dirs(); invalid_path for the content's name; invalid_operation when nothing is given, or the content
// has the name of one of the others.
Result<std::vector<WrittenFile>> write_context(FileSystem& fs, const Context& ctx, PathView directory,
                                               const ContextFiles& files);

}  // namespace ragfs
