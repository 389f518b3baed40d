// DiskTier: does the disk give back what it was given?
//
// A disk that drops writes, or a stripe with a dead leg, answers every call and is still of no use. When several reads
// in a row bring bytes that are not what was written, the evictor's thread writes a file, syncs it, reads it back past
// the page cache and compares. Only then, never for a bad read alone, is the directory given up.
// The same after reads or a bucket that failed with EIO or its like while the fence's check found nothing wrong: ext4
// answers fstat() after its shutdown as if nothing had happened. A directory in which no file can be written three
// times is given up as well; a bad place on the disk leaves room for one.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "ragfs/store/disk/aligned_buffer.h"
#include "ragfs/store/disk/disk_tier.h"

namespace ragfs {
namespace {

constexpr const char* kProbeName = "PROBE";
constexpr size_t kProbeBytes = 64 * 1024;
constexpr uint32_t kBadReadsInARow = 8;
constexpr int kProbesToFail = 3;
constexpr int64_t kProbeInterval_ns = int64_t{10} * 1'000'000'000;

}  // namespace

void DiskTier::note_read(bool good) {
  if (good) {
    bad_reads_in_a_row_.store(0, std::memory_order_relaxed);
    return;
  }
  if (bad_reads_in_a_row_.fetch_add(1) + 1 < kBadReadsInARow) return;
  wake_evictor();
}

void DiskTier::note_failed_write(int result) {
  if (errno_class(-result) != ErrnoClass::check) return;
  bad_reads_in_a_row_.store(kBadReadsInARow);
  wake_evictor();
}

void DiskTier::probe_if_due() {
  const int64_t now_ns = config_.clock->monotonic_ns();
  if (bad_reads_in_a_row_.load() < kBadReadsInARow || now_ns < next_probe_ns_ || !usable()) return;
  next_probe_ns_ = now_ns + kProbeInterval_ns;
  bad_reads_in_a_row_.store(0);
  add(DiskCounter::probes);
  int result = probe();
  for (int again = 1; again < kProbesToFail && result != -EBADMSG && errno_class(-result) == ErrnoClass::check;
       ++again) {
    result = probe();
  }
  if (result == -EBADMSG) {
    fence_->fence("probe: what was written and synced did not come back", DiskOp::read, EBADMSG);
  } else if (errno_class(-result) == ErrnoClass::check) {
    fence_->fence("probe: no file can be written", DiskOp::write, -result);
  } else if (result == 0) {
    log(fmt::format("action=disk_probe_passed dir={} - reads in a row were bad, but the disk keeps what it is given",
                    config_.directory));
  }
}

// 0; -EBADMSG when other bytes, or fewer, came back; a failed call's negated errno otherwise.
int DiskTier::probe() {
  AlignedBuffer out(kProbeBytes), in(kProbeBytes);
  for (size_t at = 0; at < kProbeBytes; at += sizeof(uint64_t)) {
    const uint64_t word = mix64(static_cast<uint64_t>(next_probe_ns_) + at);
    std::memcpy(out.data() + at, &word, sizeof word);
  }
  const int direct = buckets_->direct() ? O_DIRECT : 0;
  OwnedFd fd;
  int result = io_->open(kProbeName, O_RDWR | O_CREAT | O_TRUNC | direct, fd);
  if (result == 0) {
    const ssize_t put = io_->write(fd.get(), {out.data(), kProbeBytes}, 0, kProbeName);
    result = put < 0 ? static_cast<int>(put) : put < static_cast<ssize_t>(kProbeBytes) ? -ENOSPC : 0;
  }
  if (result == 0) result = io_->fdatasync(fd.get(), kProbeName);
  if (result == 0) {
    const ssize_t got = io_->read(fd.get(), in.data(), kProbeBytes, 0, kProbeName);
    const bool same = got == static_cast<ssize_t>(kProbeBytes) && std::memcmp(in.data(), out.data(), kProbeBytes) == 0;
    result = got < 0 ? static_cast<int>(got) : same ? 0 : -EBADMSG;
  }
  fd.close();
  io_->unlink(kProbeName);
  return result;
}

}  // namespace ragfs
