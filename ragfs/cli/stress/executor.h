// Executor: does one operation through the cache and has its answer judged.
//
// For: the runners. It knows which errors an answer may be: those that follow from the tree, and, where the backend is
// made to fail, the backend's own; a failure of the cache must never be one.
// Thread-safety: all methods may be called from any thread; each thread has its own reader number.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/cli/stress/oracle.h"
#include "ragfs/cli/stress/workload.h"
#include "ragfs/fs/file_system.h"

namespace ragfs::stress {

// What happened, for the report.
struct Outcome {
  uint64_t start = 0;
  uint64_t end = 0;
  std::string answer;  // "ok", or the error's kind
  std::optional<Violation> violation;
};

class Executor {
 public:
  // `mounts` are file systems over the same tree; `truth` is asked for the bytes that a compare expects.
  // `backend_fails`: io errors and timeouts are allowed answers. `strict`: mutations may be refused, or answered with
  // cache_not_updated. All must outlive the executor.
  Executor(Oracle& oracle, std::vector<FileSystem*> mounts, FileSystem& truth, bool backend_fails, bool strict)
      : oracle_(oracle), mounts_(std::move(mounts)), truth_(truth), backend_fails_(backend_fails), strict_(strict) {}

  Outcome run(const Operation& op, size_t reader);

 private:
  struct Call;
  void read(Call& call);
  void read_many(Call& call);
  void list(Call& call);
  void tree(Call& call);
  void glob(Call& call);
  void grep(Call& call);
  void mutate(Call& call);
  Result<void> mutate_file(Call& call);
  Result<void> mutate_place(Call& call);
  template <typename T>
  void judge(Call& call, size_t index, Aspect aspect, const Result<T>& answer, const std::optional<PathState>& seen);
  void note_error(Call& call, const Error& error, bool is_natural);

  Oracle& oracle_;
  const std::vector<FileSystem*> mounts_;
  FileSystem& truth_;
  const bool backend_fails_;
  const bool strict_;
};

}  // namespace ragfs::stress
