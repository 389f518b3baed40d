#include "ragfs/store/disk/ring_pool.h"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ragfs {

struct RingPool::Ring {
  ~Ring() {
    if (made) io_uring_queue_exit(&ring);
  }
  io_uring ring{};
  bool made = false;
  ssize_t result = 0;
  std::shared_ptr<PendingRead> keep;
};

RingPool::RingPool() = default;
RingPool::~RingPool() {
  const MutexLock lock(mutex_);
  for (auto& ring : left_) {
    io_uring_cqe* answer = nullptr;
    while (io_uring_wait_cqe(&ring->ring, &answer) == -EINTR) {
    }
  }
}

std::unique_ptr<RingPool> RingPool::open(size_t rings) {
  std::unique_ptr<RingPool> pool(new RingPool);
  const MutexLock lock(pool->mutex_);
  for (size_t i = 0; i < rings; ++i) {
    auto ring = std::make_unique<Ring>();
    if (io_uring_queue_init(2, &ring->ring, 0) < 0) break;
    ring->made = true;
    // Without it a timeout would take a place in the ring, and more than one system call.
    if ((ring->ring.features & IORING_FEAT_EXT_ARG) == 0) return nullptr;
    pool->free_.push_back(std::move(ring));
  }
  if (pool->free_.empty()) return nullptr;
  return pool;
}

std::unique_ptr<RingPool::Ring> RingPool::acquire() {
  const MutexLock lock(mutex_);
  if (free_.empty()) return nullptr;
  std::unique_ptr<Ring> ring = std::move(free_.back());
  free_.pop_back();
  return ring;
}

RingPool::Outcome RingPool::read(int fd, char* buffer, unsigned bytes, uint64_t offset,
                                 std::shared_ptr<PendingRead> keep, Deadline deadline, ssize_t& result) {
  std::unique_ptr<Ring> ring = acquire();
  if (ring == nullptr) return Outcome::busy;
  io_uring_sqe* entry = io_uring_get_sqe(&ring->ring);
  io_uring_prep_read(entry, fd, buffer, bytes, offset);
  ring->keep = std::move(keep);
  io_uring_cqe* answer = nullptr;
  bool submitted = false;
  while (true) {
    const int64_t left_ns = std::min<int64_t>(deadline.remaining_ns(), int64_t{3'600} * 1'000'000'000);
    __kernel_timespec wait{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    const int code = submitted ? io_uring_wait_cqe_timeout(&ring->ring, &answer, &wait)
                               : io_uring_submit_and_wait_timeout(&ring->ring, &answer, 1, &wait, nullptr);
    submitted = submitted || io_uring_sq_ready(&ring->ring) == 0;
    if (answer != nullptr) break;
    if ((code == -EINTR || code == -EAGAIN) && !deadline.expired()) continue;
    if (submitted && code < 0) {
      const MutexLock lock(mutex_);
      left_.push_back(std::move(ring));
      return Outcome::timed_out;
    }
    if (code < 0) return Outcome::busy;  // it did not get as far as the disk: this ring is of no use
  }
  result = answer->res;
  io_uring_cqe_seen(&ring->ring, answer);
  ring->keep.reset();
  const MutexLock lock(mutex_);
  free_.push_back(std::move(ring));
  return Outcome::done;
}

size_t RingPool::reap() {
  std::vector<std::unique_ptr<Ring>> back;
  size_t out = 0;
  {
    const MutexLock lock(mutex_);
    for (auto& ring : left_) {
      io_uring_cqe* answer = nullptr;
      if (io_uring_peek_cqe(&ring->ring, &answer) != 0) continue;
      ring->result = answer->res;
      io_uring_cqe_seen(&ring->ring, answer);
      back.push_back(std::move(ring));
    }
    std::erase(left_, nullptr);
    out = left_.size();
  }
  for (auto& ring : back) {
    ring->keep->came_back(ring->result);
    ring->keep.reset();
  }
  const MutexLock lock(mutex_);
  for (auto& ring : back) free_.push_back(std::move(ring));
  return out;
}

}  // namespace ragfs
