// DiskTier: reading.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {

// What one read needs; shared with the pool, because its caller may leave first.
struct DiskTier::ReadJob {
  explicit ReadJob(const DiskEntry& entry_in, std::shared_ptr<Bucket> bucket_in)
      : entry(entry_in),
        bucket(std::move(bucket_in)),
        start(entry.offset / kBlockBytes * kBlockBytes),
        buffer(round_up(uint64_t{entry.offset} + entry.size, kBlockBytes) - start) {}

  uint64_t end() const { return std::min(start + buffer.capacity(), round_up(bucket->data_bytes, kBlockBytes)); }

  const DiskEntry entry;
  const std::shared_ptr<Bucket> bucket;
  const uint64_t start;  // of the blocks that hold the record
  AlignedBuffer buffer;
  ssize_t result = 0;
};

std::optional<DiskHit> DiskTier::miss(DiskCounter why) {
  add(why);
  if (why != DiskCounter::misses) add(DiskCounter::misses);
  return std::nullopt;
}

std::optional<DiskHit> DiskTier::read(std::string_view key, uint64_t hash, Deadline deadline) {
  if (!usable()) return miss(DiskCounter::reads_skipped);
  const std::optional<DiskEntry> entry = index_.find(hash);
  if (!entry) return miss(DiskCounter::misses);
  if (entry->expires_at_ms != 0 && entry->expires_at_ms <= wall_ms()) return miss(DiskCounter::expired);
  std::shared_ptr<Bucket> bucket = buckets_->find(entry->bucket);
  if (bucket == nullptr) {  // evicted before the copy came in: no start finds it again
    index_.erase_in(hash, entry->bucket);
    return miss(DiskCounter::misses);
  }
  if (bucket->gone.load()) {
    index_.spoil(hash, entry->bucket);
    return miss(DiskCounter::misses);
  }
  const auto job = std::make_shared<ReadJob>(*entry, std::move(bucket));
  switch (perform_here_or_in_pool(job, deadline)) {
    case ReadPool::Outcome::done: break;
    case ReadPool::Outcome::timed_out: return miss(DiskCounter::read_timeouts);
    case ReadPool::Outcome::full: return miss(DiskCounter::reads_shed);
    case ReadPool::Outcome::stopped: return miss(DiskCounter::reads_skipped);
  }
  return judge(*job, key);
}

// On this thread, by a ring, when that cannot block: the bucket is open already. Whatever comes of it but a whole read
// or a plain error is for the pool.
ReadPool::Outcome DiskTier::perform_here_or_in_pool(const std::shared_ptr<ReadJob>& job, Deadline deadline) {
  const auto in_pool = [&] { return readers_->run([this, job] { perform(*job); }, deadline); };
  const std::shared_ptr<OwnedFd> fd = rings_ == nullptr ? nullptr : buckets_->kept_descriptor(*job->bucket);
  if (fd == nullptr) return in_pool();
  RAGFS_PAUSE_POINT("disk.read");
  const uint64_t bytes = job->end() - job->start;
  const std::string name = bucket_data_name(job->bucket->id);
  const auto keep = std::make_shared<std::pair<std::shared_ptr<ReadJob>, std::shared_ptr<OwnedFd>>>(job, fd);
  switch (io_->read_within(*rings_, fd->get(), job->buffer.data(), static_cast<unsigned>(bytes), job->start, name, keep,
                           deadline, job->result)) {
    case RingPool::Outcome::timed_out: return ReadPool::Outcome::timed_out;
    case RingPool::Outcome::busy: return in_pool();
    case RingPool::Outcome::done: break;
  }
  const bool whole = job->result == static_cast<ssize_t>(bytes);
  const bool for_pool = !whole && (job->result >= 0 || job->result == -EINVAL || job->result == -EINTR);
  return for_pool ? in_pool() : ReadPool::Outcome::done;
}

void DiskTier::perform(ReadJob& job) {
  RAGFS_PAUSE_POINT("disk.read");
  if (!usable()) {
    job.result = -ECANCELED;
    return;
  }
  int result = 0;
  const std::shared_ptr<OwnedFd> fd = buckets_->descriptor(*job.bucket, result);
  if (fd == nullptr) {
    job.result = result;
    return;
  }
  const std::string name = bucket_data_name(job.bucket->id);
  job.result = io_->read(fd->get(), job.buffer.data(), job.end() - job.start, job.start, name);
  if (job.result != -EINVAL || !buckets_->direct()) return;
  // The file was opened with O_DIRECT, and only reading shows that it cannot be done here.
  buckets_->give_up_direct();
  add(DiskCounter::direct_fallbacks);
  OwnedFd buffered;
  job.result = io_->open(name, O_RDONLY, buffered);
  if (job.result == 0)
    job.result = io_->read(buffered.get(), job.buffer.data(), job.end() - job.start, job.start, name);
}

std::optional<DiskHit> DiskTier::judge(ReadJob& job, std::string_view key) {
  const DiskEntry& entry = job.entry;
  if (job.result == -ECANCELED) return miss(DiskCounter::reads_skipped);
  if (job.result == -ENOENT) {
    job.bucket->gone.store(true);
    index_.spoil(entry.hash, entry.bucket);
    return miss(DiskCounter::vanished_files);
  }
  // The copy stays: the next read may find the disk in a better state.
  if (job.result < 0) {
    if (errno_class(-job.result) == ErrnoClass::check) note_read(false);
    return miss(DiskCounter::read_errors);
  }
  // What was read from a disk that was given up meanwhile is not believed.
  if (!usable()) return miss(DiskCounter::reads_skipped);
  const size_t at = entry.offset - job.start;
  if (static_cast<uint64_t>(job.result) < at + entry.size) {
    index_.spoil(entry.hash, entry.bucket);
    note_read(false);
    return miss(DiskCounter::short_reads);
  }
  const auto record = decode_record({job.buffer.data() + at, entry.size});
  if (!record || record->info.generation != entry.generation) {
    index_.spoil(entry.hash, entry.bucket);
    note_read(false);
    return miss(DiskCounter::corrupt_records);
  }
  if (record->key != key) return miss(DiskCounter::misses);  // another key of the same hash
  if (record->info.expires_at_ms != 0 && record->info.expires_at_ms <= wall_ms()) return miss(DiskCounter::expired);
  note_read(true);
  add(DiskCounter::hits);
  DiskHit hit;
  hit.generation = entry.generation;
  hit.expires_at_ms = record->info.expires_at_ms;
  hit.flags = record->info.flags;
  hit.hits = entry.hits;
  const size_t value_at = static_cast<size_t>(record->value.data() - job.buffer.data());
  hit.value = std::move(job.buffer).take(value_at, record->value.size());
  return hit;
}

}  // namespace ragfs
