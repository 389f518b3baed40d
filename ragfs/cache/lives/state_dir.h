// StateDir: the directory of this machine where a namespace keeps its witness and its locks.
//
// Directories are 0700 and files 0600. It must not lie in a directory that is served: users of the tree could change
// it. Nothing is made before make(). Not for: cached objects.
// Thread-safety: all methods may be called from any thread.
#pragma once

#include <string>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/file_io.h"

namespace ragfs {

class StateDir {
 public:
  // `path`: of this machine, "" = there is none. `files` must outlive it.
  explicit StateDir(std::string path, PosixFiles& files = PosixFiles::system());

  // $XDG_STATE_HOME/ragfs/<name>, or ~/.local/state/ragfs/<name>; "" when neither variable names a directory.
  static std::string default_path(std::string_view name);

  // Errors: config when it is, or lies in, one of `served`. Links are followed.
  Result<void> check_outside(const std::vector<std::string>& served) const;

  bool configured() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  // False when the directory is not there; an error when that could not be asked.
  Result<bool> exists() const;
  // Makes it, with its parents. Errors: config without a path; those of the system.
  Result<void> make() const;
  // Errors: not_found; those of the system.
  Result<OwnedFd> open() const;
  PosixFiles& files() const { return files_; }

 private:
  std::string path_;
  PosixFiles& files_;
};

}  // namespace ragfs
