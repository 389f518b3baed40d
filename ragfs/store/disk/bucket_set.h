// BucketSet: the bucket files of one disk directory: which there are, their descriptors and their bytes.
//
// For: DiskTier. A bucket is a data file and a meta file, never changed once its meta has its name. Descriptors are
// opened at the first read and kept, up to a bound. Not for: what lies in them (disk_index.h).
// Thread-safety: all methods may be called from any thread; no lock is held across a system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ragfs/base/sync.h"
#include "ragfs/store/disk/disk_io.h"

namespace ragfs {

std::string bucket_data_name(uint32_t id);
std::string bucket_meta_name(uint32_t id);
std::string bucket_temporary_name(uint32_t id);

struct Bucket {
  uint32_t id = 0;
  uint64_t data_bytes = 0;
  uint64_t meta_bytes = 0;
  uint64_t oldest_generation = 0;
  uint32_t count = 0;
  std::atomic<bool> gone{false};  // its file vanished or was taken out: reads miss without a call
};

class BucketSet {
 public:
  BucketSet(DiskIo& io, size_t most_open) : io_(io), most_open_(most_open) {}

  void add(std::shared_ptr<Bucket> bucket);
  std::shared_ptr<Bucket> find(uint32_t id) const;
  std::shared_ptr<Bucket> oldest() const;
  // Those that there are now, oldest first.
  std::vector<std::shared_ptr<Bucket>> all() const;
  // Takes it out and closes its descriptor when the last reader is done.
  void remove(uint32_t id);
  void clear();
  // The same if it is kept already; makes no system call.
  std::shared_ptr<OwnedFd> kept_descriptor(const Bucket& bucket) const;
  // The descriptor of its data file, for reading; nullptr: `result` is the negated errno.
  std::shared_ptr<OwnedFd> descriptor(const Bucket& bucket, int& result);

  uint64_t bytes() const;
  size_t count() const;
  // Of all buckets; UINT64_MAX when there is none.
  uint64_t oldest_generation() const;
  bool direct() const { return direct_.load(std::memory_order_relaxed); }
  // The file system refuses O_DIRECT: buffered I/O from now on.
  void give_up_direct() { direct_.store(false, std::memory_order_relaxed); }

 private:
  struct Held {
    std::shared_ptr<Bucket> bucket;
    std::shared_ptr<OwnedFd> fd;
  };
  DiskIo& io_;
  const size_t most_open_;
  std::atomic<bool> direct_{true};
  mutable Mutex mutex_;
  std::map<uint32_t, Held> buckets_ RAGFS_GUARDED_BY(mutex_);
  uint64_t bytes_ RAGFS_GUARDED_BY(mutex_) = 0;
  size_t open_ RAGFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace ragfs
