#include "ragfs/backends/local/local_status.h"

#include <fmt/format.h>

namespace ragfs {

FileInfo info_of(std::string_view name, const struct stat& status) {
  FileInfo info{.name = std::string(name),
                .size = static_cast<uint64_t>(status.st_size),
                .mode = kDefaultFileMode,
                .mtime_ns = to_ns(status.st_mtim),
                .kind = FileKind::other,
                .aliased = !S_ISDIR(status.st_mode) && status.st_nlink > 1};
  if (S_ISREG(status.st_mode)) info.kind = FileKind::file;
  if (S_ISDIR(status.st_mode)) {
    info.kind = FileKind::directory;
    info.mode = kDefaultDirMode;
  }
  return info;
}

std::string version_of(const struct stat& status) {
  return fmt::format("{}-{}-{}-{}", status.st_ino, status.st_size, to_ns(status.st_mtim), to_ns(status.st_ctim));
}

FileMeta meta_of(const struct stat& status, bool via_symlink) {
  return {.size = static_cast<uint64_t>(status.st_size),
          .mode = kDefaultFileMode,
          .mtime_ns = to_ns(status.st_mtim),
          .version = version_of(status),
          .cacheable = !via_symlink && status.st_nlink <= 1};
}

bool same_state(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && to_ns(a.st_mtim) == to_ns(b.st_mtim) && to_ns(a.st_ctim) == to_ns(b.st_ctim);
}

}  // namespace ragfs
