// Turns: what agents do with a tree of pages, as a list of file system calls.
//
// For: bench_trace, which carries them out through the cache and, as object accesses, through other policies. A turn is
// a request of a trace: it lists from the root down to a directory, reads the abstracts of the directories beside it, a
// few overviews and one to three pages; some turns append to their session, whose abstracts are then written anew; now
// and then a directory is renamed, a session removed, or a project scanned as grep does. Which directory and which
// pages follows from the request's chain of blocks, so turns of one conversation meet again, and some directories are
// more popular than others. Not for: measuring (bench_trace does). Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ragfs::bench {

struct PageFile {
  std::string path;  // in the tree
  uint32_t size = 0;
};

struct Directory {
  std::string path;
  std::vector<uint32_t> pages;  // indexes of Tree::files
  uint32_t abstract_file = 0;
  uint32_t overview_file = 0;
  uint32_t project = 0;
};

struct Tree {
  std::vector<PageFile> files;
  std::vector<Directory> directories;
  std::vector<std::vector<uint32_t>> projects;  // their directories
  uint64_t bytes = 0;
};

// The pages below `folder` (one directory a project), each with its size; its directories are made of the pages' first
// letters. With an empty `folder`: 7,425 pages of about 400 bytes, drawn from `seed`.
Tree tree_of_pages(const std::string& folder, uint64_t seed);

struct Request {
  std::vector<uint64_t> blocks;  // the chain, without the block that all have in common
};
// The requests of a trace (JSON lines with "hash_ids"). With an empty `file`: conversations drawn from `seed`.
std::vector<Request> requests_of(const std::string& file, size_t most, uint64_t seed);

enum class CallKind : uint8_t { list, read, write, append, rename_directory, remove_all, scan_read };
struct Call {
  CallKind kind = CallKind::read;
  std::string path;
  std::string to;     // of a rename
  uint32_t size = 0;  // of what is written
};

std::vector<Call> calls_of(const Tree& tree, const std::vector<Request>& requests, uint64_t seed);

}  // namespace ragfs::bench
