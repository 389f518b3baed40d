#include "ragfs/providers/engine/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>

namespace ragfs::engine {

Result<std::unique_ptr<Arena>> Arena::create(uint64_t size_bytes) {
  const int fd = ::memfd_create("ragfs-engine", MFD_CLOEXEC);
  if (fd < 0) return fail(ErrorCode::full, "the memory for an engine's values", errno);
  void* memory = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0) {
    memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    return fail(ErrorCode::full, "the memory for an engine's values", error);
  }
  return std::unique_ptr<Arena>(new Arena(fd, static_cast<char*>(memory), size_bytes));  // NOLINT: private constructor
}

Arena::Arena(int fd, char* memory, uint64_t size_bytes) : fd_(fd), memory_(memory), size_bytes_(size_bytes) {
  const MutexLock lock(mutex_);
  free_[order_of(size_bytes)].insert(0);
}

Arena::~Arena() {
  ::munmap(memory_, size_bytes_);
  ::close(fd_);
}

size_t Arena::order_of(uint64_t size) {
  return static_cast<size_t>(std::bit_width(std::bit_ceil(size < kLeastBlock ? kLeastBlock : size)) - 1);
}

bool Arena::take_one_locked(size_t order, std::vector<Block>& out) {
  size_t from = order;
  while (from < kOrders && free_[from].empty()) ++from;
  if (from >= kOrders) return false;
  const uint64_t offset = *free_[from].begin();
  free_[from].erase(free_[from].begin());
  for (; from > order; --from) free_[from - 1].insert(offset + (uint64_t{1} << (from - 1)));
  out.push_back({offset, uint64_t{1} << order});
  used_bytes_ += out.back().size;
  return true;
}

bool Arena::take_locked(const std::vector<uint64_t>& sizes, std::vector<Block>& out) {
  out.clear();
  for (const uint64_t size : sizes) {
    if (take_one_locked(order_of(size), out)) continue;
    for (const Block& block : out) give_back_locked(block);
    return false;
  }
  return true;
}

void Arena::give_back_locked(const Block& block) {
  used_bytes_ -= block.size;
  uint64_t offset = block.offset;
  size_t order = order_of(block.size);
  for (; (uint64_t{1} << order) < size_bytes_; ++order) {
    const uint64_t buddy = offset ^ (uint64_t{1} << order);
    if (free_[order].erase(buddy) == 0) break;
    offset = offset < buddy ? offset : buddy;
  }
  free_[order].insert(offset);
}

std::optional<std::vector<Arena::Block>> Arena::take(const std::vector<uint64_t>& sizes, Deadline deadline) {
  std::vector<Block> out;
  out.reserve(sizes.size());
  const MutexLock lock(mutex_);
  while (!take_locked(sizes, out)) {
    if (deadline.expired() || !given_back_.wait_until(mutex_, deadline)) return std::nullopt;
  }
  return out;
}

void Arena::give_back(const std::vector<Block>& blocks) {
  if (blocks.empty()) return;
  const MutexLock lock(mutex_);
  for (const Block& block : blocks) give_back_locked(block);
  given_back_.notify_all();
}

uint64_t Arena::used_bytes() const {
  const MutexLock lock(mutex_);
  return used_bytes_;
}

}  // namespace ragfs::engine
