#include "python/lock_names.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include <array>

namespace ragfs::python {
namespace {

constexpr std::string_view kDirectoryLock = ".path.ovlock";
constexpr std::string_view kSidecarPrefix = ".exact.ovlock.";
constexpr size_t kMaxSafeName = 80;
constexpr size_t kHashBytes = 8;  // 16 hex digits

std::string sha1_prefix(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  std::string hex;
  for (size_t i = 0; i < kHashBytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool is_safe(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

std::string safe_name(std::string_view name) {
  std::string safe;
  bool replaced = false;
  for (const char c : name) {
    if (is_safe(c)) {
      safe += c;
      replaced = false;
    } else if (!replaced) {
      safe += '_';
      replaced = true;
    }
  }
  const size_t first = safe.find_first_not_of("._");
  if (first == std::string::npos) return "path";
  safe = safe.substr(first, safe.find_last_not_of("._") - first + 1);
  return safe.substr(0, kMaxSafeName);
}

}  // namespace

std::string directory_lock_path(std::string_view dir) {
  return dir == "/" ? fmt::format("/{}", kDirectoryLock) : fmt::format("{}/{}", dir, kDirectoryLock);
}

std::string sidecar_lock_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  return fmt::format("{}/{}{}.{}", path.substr(0, slash), kSidecarPrefix, safe_name(path.substr(slash + 1)),
                     sha1_prefix(path));
}

bool is_lock_file_name(std::string_view name) { return name == kDirectoryLock || name.starts_with(kSidecarPrefix); }

}  // namespace ragfs::python
