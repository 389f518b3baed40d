// DiskTier: writing a bucket.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ragfs/base/pause_point.h"
#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {
namespace {

constexpr size_t kStageBytes = size_t{1} << 20;  // of one write to the data file

// Collects a data file in an aligned buffer and writes it in whole stages.
class DataWriter {
 public:
  DataWriter(DiskIo& io, int fd, const std::string& name) : io_(io), fd_(fd), name_(name), stage_(kStageBytes) {}

  // Zeros up to `offset`, then `bytes`.
  int put(uint64_t offset, std::string_view bytes) {
    while (at_ < offset) {
      static constexpr char kZeros[kBlockBytes] = {};
      if (const int result = append({kZeros, std::min<uint64_t>(offset - at_, sizeof kZeros)}); result < 0)
        return result;
    }
    return append(bytes);
  }
  // The last stage, filled up to a block.
  int finish() {
    const uint64_t end = round_up(at_, kBlockBytes);
    if (const int result = put(end, {}); result < 0) return result;
    return flush();
  }
  uint64_t size() const { return at_; }

 private:
  int append(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t part = std::min(bytes.size(), kStageBytes - filled_);
      std::memcpy(stage_.data() + filled_, bytes.data(), part);
      filled_ += part;
      at_ += part;
      bytes.remove_prefix(part);
      if (filled_ < kStageBytes) continue;
      if (const int result = flush(); result < 0) return result;
    }
    return 0;
  }
  int flush() {
    if (filled_ == 0) return 0;
    RAGFS_PAUSE_POINT("disk.write_data");
    const ssize_t put = io_.write(fd_, {stage_.data(), filled_}, written_, name_);
    if (put < 0) return static_cast<int>(put);
    if (static_cast<size_t>(put) < filled_) return -ENOSPC;  // a short write: what the next one would say
    written_ += filled_;
    filled_ = 0;
    return 0;
  }

  DiskIo& io_;
  const int fd_;
  const std::string& name_;
  AlignedBuffer stage_;
  size_t filled_ = 0;
  uint64_t at_ = 0;
  uint64_t written_ = 0;
};

}  // namespace

Result<size_t> DiskTier::write(std::span<const DiskRecord> records,
                               const std::function<bool(const DiskRecord&)>& alive) {
  if (records.empty()) return size_t{0};
  if (!usable()) return std::unexpected(write_refused(-ECANCELED).error());
  uint64_t data_end = 0;
  uint64_t oldest = UINT64_MAX;
  Deaths::HashSet hashes;
  for (const DiskRecord& record : records) {
    const uint64_t bytes = bytes_of(record);
    data_end = place_record(data_end, bytes) + bytes;
    oldest = std::min(oldest, record.generation);
    hashes.insert(record.hash);
  }
  const uint64_t meta_bytes = sizeof(MetaHeader) + records.size() * sizeof(MetaEntry);
  const uint64_t need = round_up(data_end, kBlockBytes) + round_up(meta_bytes, kBlockBytes);
  if (!wait_for_room(need)) {
    add(DiskCounter::writes_without_room);
    return fail(ErrorCode::full, fmt::format("{}: no room for {} bytes", config_.directory, need));
  }
  // Opened before `alive` is asked, closed when the copies are in the index.
  const Deaths::Window window(deaths_, std::move(hashes), oldest);
  const uint32_t id = next_bucket_.fetch_add(1);
  std::vector<MetaEntry> entries;
  entries.reserve(records.size());
  uint64_t data_bytes = 0;
  int result = write_data(id, records, entries, data_bytes);
  std::vector<MetaEntry> living;
  if (result == 0) {
    // A meta never names what is dead: only its own removal, logged or not, could keep that away after a restart.
    for (size_t i = 0; i < records.size(); ++i) {
      const MetaEntry& entry = entries[i];
      if (alive(records[i]) && !deaths_.is_dead(entry.hash, entry.generation)) living.push_back(entry);
    }
    if (living.empty()) {
      remove_files(id);
      return size_t{0};
    }
    result = publish_meta(id, encode_meta(id, data_bytes, directory_.owner().store, living));
  }
  if (result < 0) {
    give_up_bucket(id, result);
    return std::unexpected(write_refused(result).error());
  }
  return adopt_bucket(id, data_bytes, living);
}

Result<void> DiskTier::write_refused(int result) const {
  if (result == -ECANCELED) {
    return fail(ErrorCode::unavailable, fmt::format("{} is {}", config_.directory, disk_state_name(state())));
  }
  Error error = error_from_errno(-result, config_.directory);
  if (result == -ENOSPC || result == -EDQUOT) error.code = ErrorCode::full;
  return std::unexpected(std::move(error));
}

size_t DiskTier::adopt_bucket(uint32_t id, uint64_t data_bytes, std::span<const MetaEntry> entries) {
  auto bucket = std::make_shared<Bucket>();
  bucket->id = id;
  bucket->data_bytes = data_bytes;
  bucket->meta_bytes = round_up(sizeof(MetaHeader) + entries.size_bytes(), kBlockBytes);
  bucket->count = static_cast<uint32_t>(entries.size());
  bucket->oldest_generation = UINT64_MAX;
  for (const MetaEntry& e : entries) bucket->oldest_generation = std::min(bucket->oldest_generation, e.generation);
  add(DiskCounter::buckets_written);
  add(DiskCounter::bytes_written, data_bytes + bucket->meta_bytes);
  buckets_->add(std::move(bucket));
  if (buckets_->count() > config_.most_buckets) wake_evictor();
  RAGFS_PAUSE_POINT("disk.before_admit");
  size_t readable = 0;
  for (const MetaEntry& e : entries) {
    const DiskEntry copy{.hash = e.hash,
                         .generation = e.generation,
                         .expires_at_ms = e.expires_at_ms,
                         .bucket = id,
                         .offset = e.offset,
                         .size = e.size};
    if (!deaths_.admit(e.hash, e.generation, [&] { return index_.insert(copy); })) continue;
    ++readable;
    add(DiskCounter::payload_bytes, e.size);
  }
  add(DiskCounter::records_written, readable);
  return readable;
}

int DiskTier::open_data(const std::string& name, OwnedFd& fd) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL;
  int result = io_->open(name, flags | (buckets_->direct() ? O_DIRECT : 0), fd);
  if (result == -EINVAL && buckets_->direct()) {
    buckets_->give_up_direct();
    add(DiskCounter::direct_fallbacks);
    // Some file systems have made the file by the time they refuse the flag.
    result = io_->open(name, O_WRONLY | O_CREAT | O_TRUNC, fd);
  }
  return result;
}

int DiskTier::write_data(uint32_t id, std::span<const DiskRecord> records, std::vector<MetaEntry>& entries,
                         uint64_t& bytes) {
  RAGFS_PAUSE_POINT("disk.before_data");
  const std::string name = bucket_data_name(id);
  OwnedFd fd;
  int result = open_data(name, fd);
  if (result < 0) return result;
  DataWriter writer(*io_, fd.get(), name);
  for (const DiskRecord& record : records) {
    if (result < 0) break;
    const RecordHeader header =
        make_record_header({record.generation, record.expires_at_ms, record.flags}, record.key, record.value.view());
    const size_t size = record_bytes(record.key.size(), record.value.size());
    const uint64_t offset = place_record(writer.size(), size);
    result = writer.put(offset, {reinterpret_cast<const char*>(&header), sizeof header});
    if (result == 0) result = writer.put(0, record.key);
    if (result == 0) result = writer.put(0, record.value.view());
    entries.push_back({record.hash, record.generation, record.expires_at_ms, static_cast<uint32_t>(offset),
                       static_cast<uint32_t>(size)});
  }
  if (result == 0) result = writer.finish();
  bytes = writer.size();
  RAGFS_PAUSE_POINT("disk.before_datasync");
  if (result == 0) result = io_->fdatasync(fd.get(), name);
  const int closed = io_->close(fd, name);
  return result < 0 ? result : closed;
}

int DiskTier::publish_meta(uint32_t id, std::string_view meta) {
  RAGFS_PAUSE_POINT("disk.before_meta");
  const std::string temporary = bucket_temporary_name(id);
  OwnedFd fd;
  int result = io_->open(temporary, O_WRONLY | O_CREAT | O_EXCL, fd);
  if (result < 0) return result;
  const ssize_t put = io_->write(fd.get(), meta, 0, temporary);
  if (put < 0) result = static_cast<int>(put);
  if (result == 0 && static_cast<size_t>(put) < meta.size()) result = -ENOSPC;
  if (result == 0) result = io_->fsync(fd.get(), temporary);
  const int closed = io_->close(fd, temporary);
  if (result == 0) result = closed;
  RAGFS_PAUSE_POINT("disk.before_rename");
  if (result == 0) result = io_->rename(temporary, bucket_meta_name(id));
  RAGFS_PAUSE_POINT("disk.after_rename");
  if (result == 0) result = io_->fsync_directory();
  return result;
}

// The meta first: without it the data is an orphan for the next start, never an object.
void DiskTier::remove_files(uint32_t id) {
  int result = io_->unlink(bucket_meta_name(id));
  if (result == 0) result = io_->fsync_directory();
  if (result < 0 && result != -ENOENT) note_stray(id);
  io_->unlink(bucket_temporary_name(id));
  io_->unlink(bucket_data_name(id));
}

void DiskTier::give_up_bucket(uint32_t id, int result) {
  add(DiskCounter::write_failures);
  remove_files(id);
  note_failed_write(result);
  if (result == -ENOSPC || result == -EDQUOT) wake_evictor();
}

}  // namespace ragfs
