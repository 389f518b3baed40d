#include "ragfs/store/disk/owned_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <vector>

#include "ragfs/base/random.h"

namespace ragfs {
namespace {

constexpr const char* kLockName = "LOCK";
constexpr const char* kOwnerName = "OWNER";
constexpr const char* kOwnerTemporary = "OWNER.tmp";

Hash128 random_id() { return {random_u64(), random_u64()}; }

uint64_t boot_hash() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return hash64(id);
}

std::unexpected<Error> refused(int result, const std::string& path, std::string_view step) {
  Error error = error_from_errno(-result, path);
  error.message = fmt::format("{}: {} failed ({})", path, step, errno_name(-result));
  return std::unexpected<Error>(std::move(error));
}

bool may_be_there_before_us(const std::string& name) {
  return name == kLockName || name == kOwnerTemporary || name == "lost+found";
}

}  // namespace

Result<OwnedDirectory> OwnedDirectory::open(DiskIo& io, const std::string& path) {
  if (const int result = io.open_directory(path); result < 0) return refused(result, path, "opening the directory");
  OwnedDirectory opened;
  std::vector<std::string> names;
  if (const int result = io.list(names); result < 0) return refused(result, path, "listing the directory");
  const bool has_owner = std::find(names.begin(), names.end(), kOwnerName) != names.end();
  if (!has_owner && !std::all_of(names.begin(), names.end(), may_be_there_before_us)) {
    return fail(ErrorCode::invalid_data,
                fmt::format("{} holds files that are not RAGFS's; name an empty directory", path));
  }
  if (const int result = io.open(kLockName, O_RDWR | O_CREAT, opened.lock_); result < 0) {
    return refused(result, path, "opening LOCK");
  }
  if (const int result = io.try_lock(opened.lock_.get()); result < 0) {
    if (result != -EAGAIN && result != -EACCES) return refused(result, path, "locking LOCK");
    return fail(ErrorCode::already_exists, fmt::format("{} is in use by another process", path), -result);
  }
  if (has_owner) {
    std::string bytes;
    if (const int result = io.read_file(kOwnerName, kBlockBytes, bytes); result < 0) {
      return refused(result, path, "reading OWNER");
    }
    const auto owner = decode_owner(bytes);
    if (!owner) {
      return fail(ErrorCode::invalid_data,
                  fmt::format("{}/OWNER is damaged or of another version; empty the directory to begin anew", path));
    }
    opened.owner_ = *owner;
  } else {
    opened.owner_.store = random_id();
    opened.owner_.incarnation = random_id();
    opened.owner_.clean = 1;
  }
  opened.was_clean_ = opened.owner_.clean == 1;
  opened.owner_.boot_hash = boot_hash();
  opened.owner_.clean = 0;
  ++opened.owner_.start_number;
  if (!opened.was_clean_) opened.owner_.incarnation = random_id();
  if (auto written = opened.write(io); !written) return std::unexpected(written.error());
  return opened;
}

Result<void> OwnedDirectory::write(DiskIo& io) {
  const int result = io.replace_file(kOwnerName, kOwnerTemporary, encode_owner(owner_));
  if (result < 0) return refused(result, kOwnerName, "writing");
  return {};
}

Result<void> OwnedDirectory::mark_clean(DiskIo& io) {
  owner_.clean = 1;
  return write(io);
}

}  // namespace ragfs
