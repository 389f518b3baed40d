// grep over a source of listings and file contents.
//
// Two styles: the default searches everything; the local style leaves out what `rg` leaves out (hidden, ignored and
// binary files) and decodes UTF-16 with a byte order mark. Matches go to a sink as they are found, file by file in
// component-wise order of their paths. Not for: replacing text.
// Thread-safety: free functions without shared state.
#pragma once

#include <functional>

#include "ragfs/fs/file_system.h"
#include "ragfs/fs/walk.h"

namespace ragfs {

struct GrepSource {
  DirectorySource directories;
  std::function<Result<FileInfo>(PathView)> stat;
  // Bytes from an offset; fewer than `size` at the end of the file.
  std::function<Result<Bytes>(PathView, uint64_t offset, uint64_t size)> read;
};

struct GrepStyle {
  bool skip_hidden = false;      // files and directories whose name starts with '.', below the root
  bool skip_binary = false;      // LineSearchOptions::skip_binary
  bool ignore_files = false;     // rules of .gitignore and .ignore at and below the root
  bool decode_bom = false;       // LineSearchOptions::decode_bom
  bool skip_unreadable = false;  // permission_denied on a file or directory below the root is passed over

  static GrepStyle everything() { return {}; }
  static GrepStyle local() { return {true, true, true, true, true}; }
};

// FileSystem::grep over a source. A file that vanished since it was listed is passed over; what is neither file nor
// directory is not searched. Errors: not_found (root), invalid_operation `Invalid regex pattern: ...`, timeout, and
// those of the source.
Result<void> walk_grep(const Context& ctx, PathView root, const GrepOptions& options, const GrepStyle& style,
                       const GrepSource& source, const GrepSink& sink);

}  // namespace ragfs
