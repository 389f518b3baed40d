// Arena: memory that this process shares with an engine host, handed out in blocks of powers of two.
//
// A block belongs to one request until its answer has come, however late: the host may still write into it. For: values
// on their way. Not for: keeping them. Thread-safety: all methods may be called from any thread; what lies in a block
// is its holder's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/base/sync.h"

namespace ragfs::engine {

class Arena {
 public:
  static constexpr uint64_t kLeastBlock = 4096;
  struct Block {
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  // `size_bytes`: a power of two, at least kLeastBlock. Errors: full (no memory), with errno.
  static Result<std::unique_ptr<Arena>> create(uint64_t size_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int fd() const { return fd_; }
  uint64_t size_bytes() const { return size_bytes_; }
  char* at(uint64_t offset) const { return memory_ + offset; }

  // A block of at least each of `sizes`, all or none; waits for room until the deadline.
  std::optional<std::vector<Block>> take(const std::vector<uint64_t>& sizes, Deadline deadline);
  void give_back(const std::vector<Block>& blocks);
  uint64_t used_bytes() const;

 private:
  static constexpr size_t kOrders = 40;
  Arena(int fd, char* memory, uint64_t size_bytes);
  static size_t order_of(uint64_t size);
  bool take_locked(const std::vector<uint64_t>& sizes, std::vector<Block>& out) RAGFS_REQUIRES(mutex_);
  bool take_one_locked(size_t order, std::vector<Block>& out) RAGFS_REQUIRES(mutex_);
  void give_back_locked(const Block& block) RAGFS_REQUIRES(mutex_);

  const int fd_;
  char* const memory_;
  const uint64_t size_bytes_;
  mutable Mutex mutex_;
  CondVar given_back_;
  std::array<std::set<uint64_t>, kOrders> free_ RAGFS_GUARDED_BY(mutex_);  // offsets, by the power of two
  uint64_t used_bytes_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs::engine
