// Workload: the paths of a stress run, and which operation a thread does next.
//
// Layout: hot files in two directories of one scope, cold ones in many directories of several scopes, each file below
// /acct/resources/<scope>/<directory>/. All paths are declared to the oracle, directories too, and operations name only
// those, so that every effect is known. Operations are values: a thread's sequence follows from its seed alone.
// Thread-safety: Layout is immutable; a Workload belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/cli/stress/oracle.h"
#include "ragfs/cli/stress/random.h"

namespace ragfs::stress {

enum class OpKind : uint8_t {
  // Reads
  read,
  read_range,
  read_file,
  stat,
  exists,
  list,
  tree,
  glob,
  grep,
  read_many,
  stat_many,
  // Mutations of one path
  write,
  write_new,
  append,
  overwrite,
  truncate,
  create,
  touch,
  chmod,
  remove,
  compare_and_write,
  compare_and_remove,
  write_many,
  copy,
  replace,
  rename,
  mkdir,
  ensure_parents,
  // Mutations of subtrees
  remove_all,
  rename_directory,
  invalidate,
};
inline constexpr size_t kOpKindCount = static_cast<size_t>(OpKind::invalidate) + 1;
std::string_view op_name(OpKind kind);
inline bool is_mutation(OpKind kind) { return kind >= OpKind::write; }

struct Operation {
  OpKind kind = OpKind::read;
  size_t path = 0;      // of the oracle
  size_t other = 0;     // target of copy, replace, rename; a batch's second path
  uint64_t number = 0;  // tells contents apart
  uint32_t mount = 0;
  bool bypass_cache = false;
};

struct WorkloadConfig {
  size_t hot_files = 8;
  size_t cold_files = 2000;
  uint32_t hot_per_mille = 500;  // operations on hot files
  uint32_t mutations_per_mille = 300;
  uint32_t subtrees_per_mille = 100;  // of the mutations
  uint32_t bypass_per_mille = 20;     // of the reads
  uint32_t mounts = 1;

  // Errors: config, naming field, value and what is allowed.
  Result<void> validate() const;
};

class Layout {
 public:
  // Declares all paths to `oracle`.
  Layout(const WorkloadConfig& config, Oracle& oracle);

  const std::vector<size_t>& hot_files() const { return hot_files_; }
  const std::vector<size_t>& cold_files() const { return cold_files_; }
  const std::vector<size_t>& directories() const { return directories_; }
  const std::vector<size_t>& scopes() const { return scopes_; }

 private:
  void add_scope(std::string_view name, size_t directories, size_t files, size_t most, Oracle& oracle,
                 std::vector<size_t>& into);
  std::vector<size_t> hot_files_;
  std::vector<size_t> cold_files_;
  std::vector<size_t> directories_;
  std::vector<size_t> scopes_;
};

// The bytes that a whole-file write number `number` of `path` stores.
std::string content_of(std::string_view path, uint64_t number);

class Workload {
 public:
  Workload(const WorkloadConfig& config, const Layout& layout, uint64_t seed);
  Operation next();

 private:
  size_t file();
  size_t directory() { return layout_.directories()[random_.below(layout_.directories().size())]; }
  Operation read();
  Operation mutation();
  Operation subtree_mutation();

  const WorkloadConfig config_;
  const Layout& layout_;
  Random random_;
};

}  // namespace ragfs::stress
