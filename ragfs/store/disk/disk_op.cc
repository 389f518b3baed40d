#include "ragfs/store/disk/disk_op.h"

#include <cerrno>
#include <cstring>

#include "ragfs/store/disk/fence_rules.h"

namespace ragfs {

std::string_view disk_op_name(DiskOp op) {
  switch (op) {
    case DiskOp::open: return "open";
    case DiskOp::read: return "pread";
    case DiskOp::write: return "pwrite";
    case DiskOp::fdatasync: return "fdatasync";
    case DiskOp::fsync: return "fsync";
    case DiskOp::rename: return "rename";
    case DiskOp::unlink: return "unlink";
    case DiskOp::close: return "close";
    case DiskOp::list: return "getdents";
    case DiskOp::stat: return "stat";
  }
  return "unknown";
}

bool is_write_kind(DiskOp op) {
  switch (op) {
    case DiskOp::open:
    case DiskOp::write:
    case DiskOp::fdatasync:
    case DiskOp::fsync:
    case DiskOp::rename:
    case DiskOp::unlink:
    case DiskOp::close: return true;
    case DiskOp::read:
    case DiskOp::list:
    case DiskOp::stat: return false;
  }
  return false;
}

ErrnoClass errno_class(int sys_errno) {
  switch (sys_errno) {
    case ENODEV:
    case ENXIO:
    case EROFS:
    case ESHUTDOWN: return fence_rule(FenceRule::kFenceNowClass) ? ErrnoClass::fence_now : ErrnoClass::ignore;
    case EIO:
    case EUCLEAN:
    case EBADMSG:
    case ENODATA:
    case EREMOTEIO:
    case EILSEQ:
    case ETIMEDOUT:
    case ENOLINK: return fence_rule(FenceRule::kCheckClass) ? ErrnoClass::check : ErrnoClass::ignore;
    default: return fence_rule(FenceRule::kIgnoreClass) ? ErrnoClass::ignore : ErrnoClass::fence_now;
  }
}

std::string_view errno_name(int sys_errno) {
  const char* name = ::strerrorname_np(sys_errno);
  return name == nullptr ? std::string_view("0") : std::string_view(name);
}

}  // namespace ragfs
