// DiskOp: the system calls of the disk path by name, and the classes of their errnos (docs/design.md 8.1, rules 1, 2).
//
// For: telling the fence, the counters and the operator which call failed and how. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace ragfs {

enum class DiskOp : uint8_t {
  open,
  read,
  write,
  fdatasync,
  fsync,
  rename,
  unlink,
  close,
  list,
  stat,
};
inline constexpr size_t kDiskOpCount = static_cast<size_t>(DiskOp::stat) + 1;

std::string_view disk_op_name(DiskOp op);
// A failed one leaves something for the log: the check forces it out. Every open counts as one.
bool is_write_kind(DiskOp op);

enum class ErrnoClass : uint8_t {
  ignore,     // of one file or of this process: full, missing, too many descriptors; 0 = a short transfer
  check,      // may be the disk: ask the file system
  fence_now,  // the disk is gone or may not be written
};
ErrnoClass errno_class(int sys_errno);
// "EIO", or the number for one without a name here.
std::string_view errno_name(int sys_errno);

}  // namespace ragfs
