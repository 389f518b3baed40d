#include "ragfs/backends/local/temp_files.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "ragfs/base/hash.h"
#include "ragfs/base/random.h"

namespace ragfs {
namespace {

constexpr std::string_view kPrefix = ".ragfs-tmp-";
constexpr size_t kMachineDigits = 8;
constexpr size_t kPidDigits = 8;
constexpr size_t kSerialDigits = 16;
constexpr size_t kPidAt = kPrefix.size() + kMachineDigits + 1;
constexpr size_t kSerialAt = kPidAt + kPidDigits + 1;
constexpr size_t kNameBytes = kSerialAt + kSerialDigits;
constexpr int kNameAttempts = 4;  // a taken name means a clash of random numbers

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

// Pids mean something only inside one boot and one pid namespace.
std::string machine_token() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat pid_namespace = {};
  if (::stat("/proc/self/ns/pid", &pid_namespace) == 0) boot += fmt::format("/{}", pid_namespace.st_ino);
  return fmt::format("{:08x}", static_cast<uint32_t>(hash64(boot)));
}

}  // namespace

TempNames::TempNames() : machine_(machine_token()), object_(static_cast<uint32_t>(random_u64())) {}

std::string TempNames::next() {
  return fmt::format("{}{}-{:08x}-{:08x}{:08x}", kPrefix, machine_, static_cast<uint32_t>(::getpid()), object_,
                     counter_.fetch_add(1, std::memory_order_relaxed));
}

bool TempNames::is_temp(std::string_view name) noexcept {
  return name.size() == kNameBytes && name.starts_with(kPrefix) && name[kPidAt - 1] == '-' &&
         name[kSerialAt - 1] == '-' && is_hex(name.substr(kPrefix.size(), kMachineDigits)) &&
         is_hex(name.substr(kPidAt, kPidDigits)) && is_hex(name.substr(kSerialAt));
}

bool TempNames::in_path(PathView path) noexcept {
  std::string_view rest = path.text();
  while (true) {
    const size_t at = rest.find(kPrefix);
    if (at == std::string_view::npos) return false;
    const bool begins_name = at > 0 && rest[at - 1] == '/';
    rest.remove_prefix(at);
    if (begins_name && is_temp(rest.substr(0, rest.find('/')))) return true;
    rest.remove_prefix(kPrefix.size());
  }
}

bool TempNames::is_stale(std::string_view name, int64_t mtime_ns, int64_t now_ns, int64_t stale_age_ns) const {
  if (name.substr(kPrefix.size(), kMachineDigits) == machine_) {
    const std::string digits(name.substr(kPidAt, kPidDigits));
    const auto pid = static_cast<pid_t>(std::strtoul(digits.c_str(), nullptr, 16));
    if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) return true;
  }
  return now_ns - mtime_ns > stale_age_ns;
}

TempFile::TempFile(PosixFiles& files, TempNames& names, int dir_fd, mode_t mode) : files_(files), dir_fd_(dir_fd) {
  for (int attempt = 0; attempt < kNameAttempts; ++attempt) {
    temp_name_ = names.next();
    const int fd = retry_interrupted([&] {
      return files_.openat(dir_fd_, temp_name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    });
    if (fd >= 0) {
      fd_ = OwnedFd(files_, fd);
      error_ = 0;
      return;
    }
    error_ = fd;
    if (fd != -EEXIST) break;
  }
  temp_name_.clear();
}

TempFile::~TempFile() {
  // Where this fails, a file is left that is never listed and that a later listing removes.
  if (!temp_name_.empty()) (void)retry_interrupted([&] { return files_.unlinkat(dir_fd_, temp_name_.c_str(), 0); });
}

int TempFile::take_name(const char* name, bool exclusive) {
  constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
  const int result = retry_interrupted(
      [&] { return files_.renameat2(dir_fd_, temp_name_.c_str(), dir_fd_, name, exclusive ? kNoReplace : 0); });
  if (result == -EINVAL && exclusive) {
    // A file system without RENAME_NOREPLACE: a hard link is as exclusive; the destructor removes the other name.
    return retry_interrupted([&] { return files_.linkat(dir_fd_, temp_name_.c_str(), dir_fd_, name); });
  }
  if (result == 0) temp_name_.clear();
  return result;
}

}  // namespace ragfs
