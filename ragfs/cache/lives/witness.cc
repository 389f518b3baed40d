#include "ragfs/cache/lives/witness.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "ragfs/base/clock.h"
#include "ragfs/base/hash.h"
#include "ragfs/base/pause_point.h"
#include "ragfs/cache/lives/sealed_record.h"
#include "ragfs/cache/rules.h"

namespace ragfs {
namespace {

constexpr uint32_t kMagic = 0x57464752;  // "RGFW"
constexpr uint8_t kVersion = 1;
constexpr mode_t kFileMode = 0600;
constexpr const char* kName = "witness";
constexpr size_t kMostBytes = 4096;

// Inode and time of birth: a copy, or a file that was restored, has others. The device's number may change at a boot,
// so it counts only where the file system knows no births.
Result<uint64_t> place_of(PosixFiles& files, int fd, uint64_t seed) {
  struct statx status = {};
  const int asked =
      retry_interrupted([&] { return files.statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status); });
  if (asked < 0) return std::unexpected(error_from_errno(-asked, kName));
  std::string text = fmt::format("{}", status.stx_ino);
  if ((status.stx_mask & STATX_BTIME) != 0) {
    text += fmt::format(" {} {}", status.stx_btime.tv_sec, status.stx_btime.tv_nsec);
  } else {
    text += fmt::format(" on {} {}", status.stx_dev_major, status.stx_dev_minor);
  }
  return hash64(text, seed);
}

Result<uint64_t> place_of(PosixFiles& files, const OwnedFd& directory, const OwnedFd& file) {
  const Result<uint64_t> outer = place_of(files, directory.get(), 0);
  if (!outer) return outer;
  return place_of(files, file.get(), *outer);
}

std::string temp_name() {
  static std::atomic<uint64_t> counter{0};  // two threads must not share a name
  return fmt::format("witness.{}.{}.new", ::getpid(), counter.fetch_add(1));
}

}  // namespace

std::string encode_witness(const WitnessRecord& record) {
  FieldWriter body;
  body.number(record.life);
  body.number(record.place);
  body.number(record.written_at_ns);
  body.text(record.writer);
  return seal_record(kMagic, kVersion, std::move(body).take());
}

std::optional<WitnessRecord> decode_witness(std::string_view text) {
  const std::optional<std::string_view> body = open_record(kMagic, kVersion, text);
  if (!body) return std::nullopt;
  FieldReader fields(*body);
  WitnessRecord record;
  record.life = fields.number<uint64_t>();
  record.place = fields.number<uint64_t>();
  record.written_at_ns = fields.number<int64_t>();
  record.writer = fields.text();
  if (!fields.done() || record.life == 0) return std::nullopt;
  return record;
}

Result<std::optional<uint64_t>> Witness::read() const {
  PosixFiles& files = directory_.files();
  const Result<OwnedFd> directory = directory_.open();
  if (!directory) {
    if (directory.error().code == ErrorCode::not_found) return std::nullopt;
    return std::unexpected(directory.error());
  }
  const OwnedFd fd(files, retry_interrupted([&] {
                     return files.openat(directory->get(), kName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
                   }));
  if (fd.get() == -ENOENT) return std::nullopt;
  if (!fd) return std::unexpected(error_from_errno(-fd.get(), directory_.path() + "/" + kName));
  std::array<char, kMostBytes> buffer;
  const ssize_t size = pread_fully(files, fd.get(), buffer.data(), buffer.size(), 0);
  if (size < 0) return std::unexpected(error_from_errno(static_cast<int>(-size), directory_.path() + "/" + kName));
  const std::optional<WitnessRecord> record = decode_witness({buffer.data(), static_cast<size_t>(size)});
  const Result<uint64_t> place = place_of(files, *directory, fd);
  if (!place) return std::unexpected(place.error());
  const bool in_place = record && (record->place == *place || !rule_enabled(Rule::kWitnessPlace));
  return in_place ? record->life : 0;
}

Result<void> Witness::move_to(uint64_t life, std::string_view writer) const {
  if (auto made = directory_.make(); !made) return made;
  PosixFiles& files = directory_.files();
  Result<OwnedFd> directory = directory_.open();
  if (!directory) return std::unexpected(directory.error());
  const std::string temp = temp_name();
  const std::string shown = directory_.path() + "/" + kName;
  OwnedFd fd(files, retry_interrupted([&] {
               return files.openat(directory->get(), temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
             }));
  if (!fd) return std::unexpected(error_from_errno(-fd.get(), shown));
  const auto give_up = [&](int negated_errno) -> Result<void> {
    (void)files.unlinkat(directory->get(), temp.c_str(), 0);
    return std::unexpected(error_from_errno(-negated_errno, shown));
  };
  const Result<uint64_t> place = place_of(files, *directory, fd);
  if (!place) return give_up(-EIO);
  const std::string text = encode_witness({life, *place, Clock::system().wall_ns(), std::string(writer)});
  const WriteProgress wrote = write_fully(files, fd.get(), text);
  if (wrote.error != 0) return give_up(wrote.error);
  RAGFS_PAUSE_POINT("witness.before_sync");
  if (const int synced = retry_interrupted([&] { return files.fsync(fd.get()); }); synced < 0) return give_up(synced);
  if (const int closed = fd.close(); closed < 0) return give_up(closed);
  RAGFS_PAUSE_POINT("witness.before_rename");
  const int renamed =
      retry_interrupted([&] { return files.renameat2(directory->get(), temp.c_str(), directory->get(), kName, 0); });
  if (renamed < 0) return give_up(renamed);
  const int synced = retry_interrupted([&] { return files.fsync(directory->get()); });
  if (synced < 0) return std::unexpected(error_from_errno(-synced, shown));
  RAGFS_PAUSE_POINT("witness.moved");
  return {};
}

}  // namespace ragfs
