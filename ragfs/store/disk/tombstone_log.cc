#include "ragfs/store/disk/tombstone_log.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "ragfs/base/pause_point.h"

namespace ragfs {
namespace {

constexpr const char* kName = "TOMBSTONES";
constexpr const char* kTemporary = "TOMBSTONES.tmp";
constexpr size_t kMostLogBytes = size_t{1} << 30;
constexpr size_t kMostPending = 1 << 20;
constexpr int64_t kRetry_ms = 200;

std::string_view bytes_of(const std::vector<Tombstone>& batch) {
  return {reinterpret_cast<const char*>(batch.data()), batch.size() * sizeof(Tombstone)};
}

}  // namespace

TombstoneLog::~TombstoneLog() { close(Deadline::in_ms(0)); }

Result<TombstoneLog::Loaded> TombstoneLog::load() {
  Loaded loaded;
  std::string bytes;
  const int result = io_.read_file(kName, kMostLogBytes, bytes);
  loaded.missing = result == -ENOENT;
  if (result < 0 && !loaded.missing) return std::unexpected(error_from_errno(-result, kName));
  if (result == 0) {
    DecodedTombstones decoded = decode_tombstones(bytes, store_);
    loaded.damaged = decoded.state == TombstoneLogState::damaged;
    if (!loaded.damaged) loaded.tombstones = std::move(decoded.tombstones);
  }
  return loaded;
}

Result<void> TombstoneLog::begin(const std::vector<Tombstone>& kept) {
  // A new file: a torn tail must not stay before what is appended.
  if (const int begun = begin_file(kept); begun < 0) return std::unexpected(error_from_errno(-begun, kName));
  thread_ = std::thread([this] { run(); });
  return {};
}

int TombstoneLog::begin_file(const std::vector<Tombstone>& kept) {
  const TombstoneHeader header = make_tombstone_header(store_);
  std::string data(reinterpret_cast<const char*>(&header), sizeof header);
  data.append(bytes_of(kept));
  const int replaced = io_.replace_file(kName, kTemporary, data);
  // Whatever it said, the name may stand for another file now: nothing more goes to the old one.
  OwnedFd fd;
  const int opened = io_.open(kName, O_WRONLY | O_APPEND, fd);
  fd_ = std::move(fd);
  if (replaced < 0) return replaced;
  if (opened < 0) return opened;
  records_.store(kept.size(), std::memory_order_relaxed);
  return 0;
}

bool TombstoneLog::append(uint64_t hash, uint64_t generation, Deadline deadline) {
  const Tombstone tombstone = make_tombstone(store_, hash, generation);
  const MutexLock lock(mutex_);
  // A million removals that no disk takes: the life will not count as clean, whatever happens to the rest.
  if (stopping_ || given_up_ || pending_.size() >= kMostPending) {
    failures_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  pending_.push_back(tombstone);
  const uint64_t mine = ++appended_;
  changed_.notify_all();
  while (written_ < mine) {
    if (!changed_.wait_until(mutex_, deadline) && written_ < mine) return false;
  }
  return true;
}

void TombstoneLog::request_compaction(uint64_t oldest_generation) {
  const MutexLock lock(mutex_);
  compact_below_ = oldest_generation;
  changed_.notify_all();
}

void TombstoneLog::run() {
  while (true) {
    std::vector<Tombstone> batch;
    uint64_t compact_below = 0;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && !given_up_ && pending_.empty() && compact_below_ == 0)
        changed_.wait_until(mutex_, Deadline::never());
      if (given_up_) {
        fd_.close();
        return;
      }
      if (stopping_ && pending_.empty()) return;
      batch.swap(pending_);
      compact_below = std::exchange(compact_below_, 0);
    }
    const bool done = batch.empty() || write_batch(batch);
    if (done && compact_below != 0) compact(compact_below);
    const MutexLock lock(mutex_);
    if (done) {
      written_ += batch.size();
      changed_.notify_all();
      continue;
    }
    failures_.fetch_add(1, std::memory_order_relaxed);
    batch.insert(batch.end(), pending_.begin(), pending_.end());
    pending_ = std::move(batch);
    if (stopping_) return;
    if (!given_up_) changed_.wait_until(mutex_, Deadline::in_ms(kRetry_ms));
  }
}

bool TombstoneLog::write_batch(const std::vector<Tombstone>& batch) {
  RAGFS_PAUSE_POINT("disk.tombstone");
  const std::string_view data = bytes_of(batch);
  const ssize_t put = io_.append(fd_.get(), data, kName);
  if (put == static_cast<ssize_t>(data.size())) {
    records_.fetch_add(batch.size(), std::memory_order_relaxed);
    return true;
  }
  // Part of a record may be there: begin a file without it, or the rest of the log could not be read.
  std::string bytes;
  if (io_.read_file(kName, kMostLogBytes, bytes) < 0) return false;
  const DecodedTombstones decoded = decode_tombstones(bytes, store_);
  if (decoded.state != TombstoneLogState::damaged) begin_file(decoded.tombstones);
  return false;
}

void TombstoneLog::compact(uint64_t oldest_generation) {
  std::string bytes;
  if (io_.read_file(kName, kMostLogBytes, bytes) < 0) return;
  DecodedTombstones decoded = decode_tombstones(bytes, store_);
  if (decoded.state == TombstoneLogState::damaged) return;  // what the next start makes of it is right; this is not
  std::erase_if(decoded.tombstones, [&](const Tombstone& t) { return t.generation < oldest_generation; });
  begin_file(decoded.tombstones);
}

void TombstoneLog::give_up() {
  const MutexLock lock(mutex_);
  given_up_ = true;
  changed_.notify_all();
}

uint64_t TombstoneLog::pending() const {
  const MutexLock lock(mutex_);
  return appended_ - written_;
}

bool TombstoneLog::close(Deadline deadline) {
  if (!thread_.joinable()) return false;
  bool all = true;
  {
    const MutexLock lock(mutex_);
    while (written_ < appended_ && !given_up_) {
      if (!changed_.wait_until(mutex_, deadline)) break;
    }
    all = written_ == appended_ && !given_up_;
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  if (all) all = io_.fdatasync(fd_.get(), kName) == 0;
  fd_.close();
  return all;
}

}  // namespace ragfs
