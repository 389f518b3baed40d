#include "ragfs/cache/lives/hot_keys_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "ragfs/cache/lives/sealed_record.h"

namespace ragfs {
namespace {

constexpr uint32_t kMagic = 0x48464752;  // "RGFH"
constexpr uint8_t kVersion = 1;
constexpr mode_t kFileMode = 0600;
constexpr const char* kName = "hot_keys";
constexpr size_t kMostBytes = 4 << 20;

}  // namespace

std::string encode_hot_keys(const std::vector<HotKeysOfBackend>& backends) {
  FieldWriter body;
  size_t left = HotKeysFile::kMostKeys;
  body.number(static_cast<uint32_t>(backends.size()));
  for (const HotKeysOfBackend& backend : backends) {
    const size_t count = std::min(left, backend.keys.size());
    left -= count;
    body.number(backend.identity_hash);
    body.number(static_cast<uint32_t>(count));
    for (size_t i = 0; i < count; ++i) {
      body.number(static_cast<uint8_t>(backend.keys[i].kind));
      body.number(backend.keys[i].reads);
      body.text(backend.keys[i].path);
    }
  }
  return seal_record(kMagic, kVersion, std::move(body).take());
}

std::optional<std::vector<HotKeysOfBackend>> decode_hot_keys(std::string_view text) {
  const std::optional<std::string_view> body = open_record(kMagic, kVersion, text);
  if (!body) return std::nullopt;
  FieldReader fields(*body);
  std::vector<HotKeysOfBackend> backends;
  size_t all = 0;
  for (auto left = fields.number<uint32_t>(); left > 0 && fields.ok(); --left) {
    HotKeysOfBackend& backend = backends.emplace_back();
    backend.identity_hash = fields.number<uint64_t>();
    for (auto keys = fields.number<uint32_t>(); keys > 0 && fields.ok(); --keys) {
      HotKey key;
      const auto kind = fields.number<uint8_t>();
      key.kind = static_cast<ObjectKind>(kind);
      key.reads = fields.number<uint64_t>();
      key.path = fields.text();
      const bool known = key.kind == ObjectKind::file || key.kind == ObjectKind::listing;
      if (!known || !PathView::is_normal(key.path) || ++all > HotKeysFile::kMostKeys) return std::nullopt;
      backend.keys.push_back(std::move(key));
    }
  }
  return fields.done() ? std::optional(std::move(backends)) : std::nullopt;
}

std::vector<HotKeysOfBackend> HotKeysFile::read() const {
  PosixFiles& files = directory_.files();
  const Result<OwnedFd> directory = directory_.open();
  if (!directory) return {};
  const OwnedFd fd(files, retry_interrupted([&] {
                     return files.openat(directory->get(), kName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
                   }));
  if (!fd) return {};
  std::string text(kMostBytes, '\0');
  const ssize_t size = pread_fully(files, fd.get(), text.data(), text.size(), 0);
  if (size < 0) return {};
  return decode_hot_keys({text.data(), static_cast<size_t>(size)}).value_or(std::vector<HotKeysOfBackend>());
}

Result<void> HotKeysFile::write(const std::vector<HotKeysOfBackend>& backends) const {
  static std::atomic<uint64_t> counter{0};  // two threads must not share a name
  PosixFiles& files = directory_.files();
  const Result<OwnedFd> directory = directory_.open();
  if (!directory) return std::unexpected(directory.error());
  const std::string temp = fmt::format("{}.{}.{}.new", kName, ::getpid(), counter.fetch_add(1));
  const std::string shown = directory_.path() + "/" + kName;
  OwnedFd fd(files, retry_interrupted([&] {
               return files.openat(directory->get(), temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
             }));
  if (!fd) return std::unexpected(error_from_errno(-fd.get(), shown));
  int failed = -write_fully(files, fd.get(), encode_hot_keys(backends)).error;
  if (failed == 0) failed = -fd.close();
  if (failed == 0) {
    failed =
        -retry_interrupted([&] { return files.renameat2(directory->get(), temp.c_str(), directory->get(), kName, 0); });
  }
  if (failed == 0) return {};
  (void)files.unlinkat(directory->get(), temp.c_str(), 0);
  return std::unexpected(error_from_errno(failed, shown));
}

}  // namespace ragfs
