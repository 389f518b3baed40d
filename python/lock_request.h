// LockRequest and LockConflict: what is asked of path locks, and what was in the way. Thread-safety: values.
#pragma once

#include <string>

namespace ragfs::python {

// Path and kind of one wanted lock.
struct LockRequest {
  std::string path;
  bool tree = false;
  std::string lock_path;  // the name of its lock file; "" for an automatic lock: it is looked up when it is needed
};

struct LockConflict {
  std::string lock_path;
  std::string owner;
  bool tree = false;
};

}  // namespace ragfs::python
