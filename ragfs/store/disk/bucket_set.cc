#include "ragfs/store/disk/bucket_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace ragfs {

std::string bucket_data_name(uint32_t id) { return fmt::format("{:08x}.data", id); }
std::string bucket_meta_name(uint32_t id) { return fmt::format("{:08x}.meta", id); }
std::string bucket_temporary_name(uint32_t id) { return fmt::format("{:08x}.tmp", id); }

void BucketSet::add(std::shared_ptr<Bucket> bucket) {
  const MutexLock lock(mutex_);
  bytes_ += bucket->data_bytes + bucket->meta_bytes;
  const uint32_t id = bucket->id;
  buckets_[id].bucket = std::move(bucket);
}

std::shared_ptr<Bucket> BucketSet::find(uint32_t id) const {
  const MutexLock lock(mutex_);
  const auto found = buckets_.find(id);
  return found == buckets_.end() ? nullptr : found->second.bucket;
}

std::vector<std::shared_ptr<Bucket>> BucketSet::all() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Bucket>> out;
  out.reserve(buckets_.size());
  for (const auto& [id, held] : buckets_) out.push_back(held.bucket);
  return out;
}

std::shared_ptr<Bucket> BucketSet::oldest() const {
  const MutexLock lock(mutex_);
  return buckets_.empty() ? nullptr : buckets_.begin()->second.bucket;
}

void BucketSet::remove(uint32_t id) {
  Held held;  // its descriptor is closed outside the lock
  {
    const MutexLock lock(mutex_);
    const auto found = buckets_.find(id);
    if (found == buckets_.end()) return;
    held = std::move(found->second);
    buckets_.erase(found);
    bytes_ -= held.bucket->data_bytes + held.bucket->meta_bytes;
    if (held.fd != nullptr) --open_;
  }
  held.bucket->gone.store(true);
}

void BucketSet::clear() {
  std::map<uint32_t, Held> all;
  {
    const MutexLock lock(mutex_);
    all.swap(buckets_);
    bytes_ = 0;
    open_ = 0;
  }
}

std::shared_ptr<OwnedFd> BucketSet::kept_descriptor(const Bucket& bucket) const {
  const MutexLock lock(mutex_);
  const auto found = buckets_.find(bucket.id);
  return found == buckets_.end() ? nullptr : found->second.fd;
}

std::shared_ptr<OwnedFd> BucketSet::descriptor(const Bucket& bucket, int& result) {
  if (std::shared_ptr<OwnedFd> kept = kept_descriptor(bucket)) return kept;
  auto fd = std::make_shared<OwnedFd>();
  const std::string name = bucket_data_name(bucket.id);
  result = io_.open(name, O_RDONLY | (direct() ? O_DIRECT : 0), *fd);
  if (result == -EINVAL && direct()) {
    give_up_direct();
    result = io_.open(name, O_RDONLY, *fd);
  }
  if (result < 0) return nullptr;
  const MutexLock lock(mutex_);
  const auto found = buckets_.find(bucket.id);
  // Beyond the bound a descriptor lives for one read.
  if (found == buckets_.end() || found->second.fd != nullptr || open_ >= most_open_) return fd;
  ++open_;
  return found->second.fd = fd;
}

uint64_t BucketSet::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

size_t BucketSet::count() const {
  const MutexLock lock(mutex_);
  return buckets_.size();
}

uint64_t BucketSet::oldest_generation() const {
  const MutexLock lock(mutex_);
  uint64_t oldest = UINT64_MAX;
  for (const auto& [id, held] : buckets_) oldest = std::min(oldest, held.bucket->oldest_generation);
  return oldest;
}

}  // namespace ragfs
