#include "ragfs/base/asymmetric_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ragfs {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool AsymmetricBarrier::register_process() noexcept {
#if defined(__SANITIZE_THREAD__)
  return false;  // ThreadSanitizer does not see what the kernel orders
#else
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
#endif
}

void AsymmetricBarrier::heavy() noexcept {
  if (!kExpedited) return;  // the other side's exchange and our seq_cst stores and loads are in one order
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) return;
  // A child after fork() may have to register again. A kernel that had the call once and refuses it now would leave
  // readers without a barrier: there is no way on.
  const bool again = errno == EPERM && register_process() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  if (!again) std::abort();
}

}  // namespace ragfs
