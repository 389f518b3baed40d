// memory_limit_bytes(): how much memory this process may use: the machine's, or less where its control group says so.
//
// For: choosing a default budget, once at start. Not for: how much is free. Both hierarchies of control groups are
// read, and every group above the process's own. Thread-safety: a pure function of the files below the two roots.
#pragma once

#include <cstdint>
#include <string>

namespace ragfs {

// The directories are for tests. UINT64_MAX when nothing can be read.
uint64_t memory_limit_bytes(const std::string& proc = "/proc", const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace ragfs
