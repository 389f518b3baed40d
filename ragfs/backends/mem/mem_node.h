// MemNode: a file or a directory of memfs, and the look-ups in a tree of them.
//
// Not for: rules of the file system (MemFileSystem has them). Thread-safety: none of its own; the lock of the file
// system guards the whole tree.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ragfs/backends/mem/mem_content.h"
#include "ragfs/base/path.h"
#include "ragfs/fs/file_system.h"

namespace ragfs {

struct MemNode {
  using Children = std::map<std::string, std::unique_ptr<MemNode>, std::less<>>;

  bool is_dir = false;
  uint32_t mode = 0;
  int64_t mtime_ns = 0;
  uint64_t version = 0;  // of a file's content and times
  MemContent content;
  Children children;  // of a directory

  FileInfo info(std::string_view name) const;
  FileMeta meta() const;
  // The child, or nullptr; also for a file.
  MemNode* child(std::string_view name) const;
};

// What a node costs beside its content: name, map node, the struct. For the capacity.
uint64_t mem_node_cost(std::string_view name);
// Entries and bytes of `node` (called `name`) and of all below it.
struct MemUsage {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};
MemUsage mem_usage(std::string_view name, const MemNode& node);

// The node at `path`, or nullptr when a component is missing or stands below a file.
MemNode* mem_find(MemNode& root, PathView path);
// The directory that holds (or would hold) `path`. Errors: not_found or not_a_directory, naming the parent.
Result<MemNode*> mem_find_parent(MemNode& root, PathView path);

}  // namespace ragfs
