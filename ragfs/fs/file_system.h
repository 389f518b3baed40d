// FileSystem: the one interface of the tree. Backends implement it, wrappers (statistics, locks, cache, mounts)
// implement it around another one, interfaces (CLI, HTTP, Python) call it.
//
// Semantics follow RAGFS as OpenViking uses it; where its backends disagree, the rule written here holds for ours.
// Paths are normalised and relative to the file system's own root. All methods may be called from any thread at any
// time; a call runs on the caller's thread. Errors every method may return besides those it names: invalid_path, io,
// permission_denied, timeout, read_only, full, internal. A failure to ask is never not_found and never an empty answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ragfs/base/bytes.h"
#include "ragfs/base/context.h"
#include "ragfs/base/error.h"
#include "ragfs/base/path.h"

namespace ragfs {

enum class FileKind : uint8_t {
  file = 0,
  directory = 1,
  other = 2,  // a symlink, a socket, a device: listed, and not answered for from a listing
};

inline constexpr uint32_t kDefaultFileMode = 0644;
inline constexpr uint32_t kDefaultDirMode = 0755;

struct FileInfo {
  std::string name;      // last component; "/" for a root
  uint64_t size = 0;     // bytes; what the backend says for directories
  uint32_t mode = 0;     // permission bits
  int64_t mtime_ns = 0;  // since 1970-01-01 UTC, may be negative
  FileKind kind = FileKind::file;
  bool aliased = false;  // has other names (hard links): may change without a mutation of this path
  bool is_dir() const { return kind == FileKind::directory; }
  friend bool operator==(const FileInfo&, const FileInfo&) = default;
};

// What a backend knows of a file's state besides its bytes.
struct FileMeta {
  uint64_t size = 0;
  uint32_t mode = kDefaultFileMode;
  int64_t mtime_ns = 0;
  // Opaque and equal only for equal content ("ino-size-mtime-ctime", an ETag, a row version); "" = unknown.
  std::string version;
  // False for what is reached through a symlink or has more than one hard link: another path may change it.
  bool cacheable = true;
};

// A whole file and its meta as one snapshot: the length of data is meta.size.
struct FileContent {
  Bytes data;
  FileMeta meta;
};

enum class WriteFlag : uint8_t {
  none,        // file must exist: overwrite in place at offset, zero-filling a gap
  create,      // create or replace the whole content; offset must be 0
  create_new,  // create, fail with already_exists when it is there; offset must be 0
  append,      // file must exist: append; offset is ignored
  truncate,    // file must exist: replace the whole content; offset must be 0
};

struct WriteResult {
  uint64_t bytes = 0;  // of the caller's data that are in the file now
  FileMeta meta;       // of the file after the write, from the same descriptor or answer
};

// A whole-file write of write_many(). Path and data are borrowed for the call.
struct WriteItem {
  PathView path;
  std::string_view data;
};

struct TreeOptions {
  bool show_hidden = false;  // hidden files are dropped, hidden directories always kept
  std::optional<uint64_t> node_limit;
  std::optional<uint64_t> level_limit;
};

struct TreeEntry {
  std::string path;      // absolute in the file system that was asked
  std::string rel_path;  // relative to the query root
  FileInfo info;
};

struct GlobOptions {
  bool show_hidden = false;
  std::optional<uint64_t> page_size;  // 0 is an error; absent = everything, no token
  std::optional<uint64_t> level_limit;
  std::string token;  // of the page before; "" = first page
};

struct GlobEntry {
  std::string path;
  std::string rel_path;
  std::string name;
  bool is_dir = false;
};

struct GlobPage {
  std::vector<GlobEntry> entries;
  std::string next_token;  // "" on the last page
};

struct GrepOptions {
  std::string pattern;  // RE2 syntax
  bool recursive = false;
  bool case_insensitive = false;
  std::optional<uint64_t> node_limit;  // most matches
  std::optional<uint64_t> level_limit;
  std::string exclude_path;  // absolute in the file system that is asked; "" = none
  uint64_t before_context = 0;
  uint64_t after_context = 0;
};

struct GrepLine {
  uint64_t line = 0;  // from 1
  std::string content;
};

struct GrepMatch {
  std::string file;  // relative to the query root, "." when the root is a file
  uint64_t line = 0;
  std::string content;  // the line without its terminator
  std::vector<GrepLine> before;
  std::vector<GrepLine> after;
};

// Receives matches as they are found; false stops the search.
using GrepSink = std::function<bool(GrepMatch&&)>;

// What the layers above may rely on. Constant for the life of the file system.
struct FileSystemTraits {
  std::string type;      // "localfs", "memfs", ...
  std::string identity;  // names the stored data itself, not the mount: equal only for the same data; "" = never cache
  bool control = false;  // queuefs, serverinfofs: reading has effects or answers change by themselves
  bool listings_prove_absence = false;  // a name that is not in a listing does not exist
  bool directory_times = false;         // a directory's size or times change with its members
  bool implicit_directories = false;    // directories exist while something is below them
  bool case_insensitive = false;
  bool greps_as_rg = false;    // grep leaves out what rg does: hidden, ignored and binary files
  bool process_local = false;  // no other process can reach the data, and it ends with this one
  // After a mutation that timed out: how long it may still take effect. 0 = it cannot.
  int64_t late_apply_bound_ms = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual const FileSystemTraits& traits() const = 0;

  // An empty file. Errors: already_exists, not_found (parent), not_a_directory (parent).
  virtual Result<void> create(const Context& ctx, PathView path) = 0;
  // One directory. Errors: already_exists, not_found (parent), not_a_directory (parent).
  virtual Result<void> mkdir(const Context& ctx, PathView path, uint32_t mode) = 0;
  // All missing ancestors of `path`, not `path` itself. Existing directories are fine; concurrent callers all succeed.
  // Errors: not_a_directory when an ancestor is a file.
  virtual Result<void> ensure_parent_dirs(const Context& ctx, PathView path, uint32_t mode);
  // A file or an empty directory. Errors: not_found, directory_not_empty, invalid_operation (the root).
  virtual Result<void> remove(const Context& ctx, PathView path) = 0;
  // A file, or a directory with everything below it. The root itself stays, emptied. Errors: not_found.
  // On an error part of it may be gone.
  virtual Result<void> remove_all(const Context& ctx, PathView path) = 0;

  // Bytes from `offset`; size 0 = to the end; past the end = empty. Errors: not_found, is_a_directory.
  virtual Result<Bytes> read(const Context& ctx, PathView path, uint64_t offset, uint64_t size) = 0;
  // What read() of the whole file would give, when that needs no wait for a disk, a peer or a long-held lock; nothing
  // otherwise, for whatever reason. For threads that must not be held up: ask this first, then read() on another.
  virtual std::optional<Bytes> read_at_once(const Context& ctx, PathView path);
  // The whole file with its meta, as one snapshot. Errors: not_found, is_a_directory, io when it kept changing.
  virtual Result<FileContent> read_file(const Context& ctx, PathView path) = 0;
  // Whole-file flags replace atomically: a reader sees the old bytes or the new ones.
  // Errors: not_found, is_a_directory, already_exists (create_new), invalid_operation (offset with a whole-file flag).
  virtual Result<WriteResult> write(const Context& ctx, PathView path, std::string_view data, uint64_t offset,
                                    WriteFlag flag) = 0;
  // Replaces the content if it equals `expected`; false when missing or different. Errors: would_block, not_supported.
  virtual Result<bool> compare_and_write(const Context& ctx, PathView path, std::string_view expected,
                                         std::string_view replacement);
  virtual Result<bool> compare_and_remove(const Context& ctx, PathView path, std::string_view expected);
  // Grows with zeros or cuts. Errors: not_found, is_a_directory.
  virtual Result<void> truncate(const Context& ctx, PathView path, uint64_t size) = 0;
  // Creates an empty file, or sets the modification time to now. Errors: not_found (parent).
  virtual Result<void> touch(const Context& ctx, PathView path) = 0;
  // Errors: not_found. Backends without modes check existence only.
  virtual Result<void> chmod(const Context& ctx, PathView path, uint32_t mode) = 0;

  // Direct children, in no order. Errors: not_found, not_a_directory.
  virtual Result<std::vector<FileInfo>> read_dir(const Context& ctx, PathView path) = 0;
  // The same for internal readers (locks): never from a cache, internal names included.
  virtual Result<std::vector<FileInfo>> read_internal_dir(const Context& ctx, PathView path);
  // Errors: not_found.
  virtual Result<FileInfo> stat(const Context& ctx, PathView path) = 0;
  // What stat() would give of something that is there, when that needs no wait; see read_at_once().
  virtual std::optional<FileInfo> stat_at_once(const Context& ctx, PathView path);
  // False only for a true not_found; errors are errors.
  virtual Result<bool> exists(const Context& ctx, PathView path);

  // Many paths in one call, asked together where that is cheaper: one answer a path, in their order; each is what the
  // single call (read() of the whole file, stat(), read_dir(), exists()) could have answered at some moment of this
  // one. A path may come twice.
  virtual std::vector<Result<Bytes>> read_many(const Context& ctx, std::span<const PathView> paths);
  virtual std::vector<Result<FileInfo>> stat_many(const Context& ctx, std::span<const PathView> paths);
  virtual std::vector<Result<std::vector<FileInfo>>> read_dir_many(const Context& ctx, std::span<const PathView> paths);
  std::vector<Result<bool>> exists_many(const Context& ctx, std::span<const PathView> paths);
  // write() with WriteFlag::create for each item, in their order; each is tried whatever became of those before.
  // Readers may see some of them before the others. A path may come once only (invalid_operation for all otherwise).
  virtual std::vector<Result<WriteResult>> write_many(const Context& ctx, std::span<const WriteItem> items);

  // The backend's version of a file (FileMeta::version); "" = unknown. Errors: not_found, is_a_directory.
  virtual Result<std::string> version(const Context& ctx, PathView path);

  // Where `path` leads when every symlink on the way is followed; the path itself where a backend has none.
  // Errors: not_found, permission_denied (a link leaves the root).
  virtual Result<Path> resolve(const Context& ctx, PathView path);

  // A file or a directory. One rule on every backend: an existing file is replaced by a file; an existing empty
  // directory by a directory; anything else fails: directory_not_empty, is_a_directory, not_a_directory,
  // invalid_operation (into itself). Onto itself succeeds and does nothing. Errors: not_found.
  virtual Result<void> rename(const Context& ctx, PathView from, PathView to) = 0;
  // Moves a file over another or none. Errors: not_found, invalid_operation (from is a directory), is_a_directory (to).
  virtual Result<void> replace(const Context& ctx, PathView from, PathView to);
  // Copies a file over another or none, creating missing parents; the target appears whole or not at all.
  // Errors: not_found, is_a_directory.
  virtual Result<WriteResult> copy(const Context& ctx, PathView from, PathView to);

  // Depth first, each directory sorted (directories first, then lower-case name, then name); the root is not listed.
  virtual Result<std::vector<TreeEntry>> tree(const Context& ctx, PathView path, const TreeOptions& options);
  // Errors: invalid_operation for a bad pattern, page size or token.
  virtual Result<GlobPage> glob(const Context& ctx, PathView path, std::string_view pattern,
                                const GlobOptions& options);
  // Errors: not_found, invalid_operation for a bad pattern.
  virtual Result<void> grep(const Context& ctx, PathView path, const GrepOptions& options, const GrepSink& sink);
};

// Errors: invalid_operation when two items name one path.
Result<void> check_distinct(std::span<const WriteItem> items);

// The order of listings: directories first, then lower-case name, then name.
void sort_entries(std::vector<FileInfo>& entries);

}  // namespace ragfs
