#include "ragfs/cache/envelope.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "ragfs/base/hash.h"

namespace ragfs {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and written as it lies");

constexpr uint32_t kMagic = 0x31464752;  // "RGF1"
constexpr uint8_t kFormatVersion = 1;    // a reader refuses every other one; bump it with any change below

struct Header {
  uint32_t magic;
  uint8_t format_version;
  uint8_t kind;
  uint16_t path_size;
  uint64_t checksum;  // of everything else, see checksum_of()
  uint64_t identity_hash;
  uint64_t epoch;
  uint64_t stamp;
  int64_t filled_at_ns;
  int64_t expires_at_ns;
  uint64_t scope_generation;
  uint64_t size;
  int64_t mtime_ns;
  uint32_t mode;
  uint32_t payload_size;
  uint16_t version_size;
  uint16_t scope_size;  // bytes of path that name its scope
  uint8_t digest_kind;  // 0 none; others are reserved for xxh3 and sha256
  uint8_t reserved[3];
};
static_assert(sizeof(Header) == 96);
static_assert(std::is_trivially_copyable_v<Header>);

constexpr size_t kChecksumEnd = offsetof(Header, checksum) + sizeof(uint64_t);

uint64_t seed_of(std::string_view object) {
  uint64_t seed = 0;
  std::memcpy(&seed, object.data(), sizeof seed);
  return seed;
}

// Two one-shot hashes, chained by the seed: head first, then payload. Cheaper than a streaming state on small objects.
uint64_t checksum_of(std::string_view head, std::string_view payload) {
  return hash64(payload, hash64(head.substr(kChecksumEnd), seed_of(head)));
}

}  // namespace

size_t envelope_overhead_bytes(const EnvelopeInfo& info) {
  return sizeof(Header) + info.path.size() + info.version.size();
}

std::string encode_envelope(const EnvelopeInfo& info, std::string_view payload) {
  assert(info.path.size() <= UINT16_MAX && info.version.size() <= UINT16_MAX && payload.size() <= UINT32_MAX);
  Header header{};
  header.magic = kMagic;
  header.format_version = kFormatVersion;
  header.kind = static_cast<uint8_t>(info.kind);
  header.path_size = static_cast<uint16_t>(info.path.size());
  header.identity_hash = info.identity_hash;
  header.epoch = info.epoch;
  header.stamp = info.stamp;
  header.filled_at_ns = info.filled_at_ns;
  header.expires_at_ns = info.expires_at_ns;
  header.scope_generation = info.scope_generation;
  header.size = info.size;
  header.mtime_ns = info.mtime_ns;
  header.mode = info.mode;
  header.payload_size = static_cast<uint32_t>(payload.size());
  header.version_size = static_cast<uint16_t>(info.version.size());
  header.scope_size = static_cast<uint16_t>(scope_length(PathView::from_normal(info.path)));
  std::string head;
  head.reserve(envelope_overhead_bytes(info));
  head.append(reinterpret_cast<const char*>(&header), sizeof header);
  head.append(info.path);
  head.append(info.version);
  header.checksum = checksum_of(head, payload);
  std::memcpy(head.data() + offsetof(Header, checksum), &header.checksum, sizeof header.checksum);
  return head;
}

std::optional<DecodedEnvelope> decode_envelope(std::string_view object, bool verify) {
  if (object.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, object.data(), sizeof header);
  if (header.magic != kMagic || header.format_version != kFormatVersion) return std::nullopt;
  if (header.kind < static_cast<uint8_t>(ObjectKind::file) || header.kind > static_cast<uint8_t>(ObjectKind::subtree)) {
    return std::nullopt;
  }
  const size_t head_size = sizeof header + header.path_size + header.version_size;
  if (object.size() != head_size + header.payload_size || header.scope_size > header.path_size) return std::nullopt;
  if (verify && checksum_of(object.substr(0, head_size), object.substr(head_size)) != header.checksum) {
    return std::nullopt;
  }
  DecodedEnvelope decoded;
  decoded.info = EnvelopeInfo{
      .kind = static_cast<ObjectKind>(header.kind),
      .identity_hash = header.identity_hash,
      .epoch = header.epoch,
      .stamp = header.stamp,
      .filled_at_ns = header.filled_at_ns,
      .expires_at_ns = header.expires_at_ns,
      .scope_generation = header.scope_generation,
      .size = header.size,
      .mtime_ns = header.mtime_ns,
      .mode = header.mode,
      .path = object.substr(sizeof header, header.path_size),
      .version = object.substr(sizeof header + header.path_size, header.version_size),
  };
  decoded.payload = object.substr(head_size);
  return decoded;
}

std::optional<EnvelopeGlance> glance_at_envelope(std::string_view object, ObjectKind kind, uint64_t identity_hash,
                                                 std::string_view path) {
  if (object.size() < sizeof(Header) + path.size()) return std::nullopt;
  const char* const at = object.data();
  const auto field = [at]<typename T>(T, size_t offset) {
    T value;
    std::memcpy(&value, at + offset, sizeof value);
    return value;
  };
  // Magic, format version, kind and path length are the first eight bytes: compared as one number.
  const uint64_t expected = uint64_t{kMagic} | uint64_t{kFormatVersion} << 32 |
                            uint64_t{static_cast<uint8_t>(kind)} << 40 | uint64_t{path.size()} << 48;
  if (field(uint64_t{}, 0) != expected) return std::nullopt;
  if (field(uint64_t{}, offsetof(Header, identity_hash)) != identity_hash) return std::nullopt;
  const size_t payload_at = sizeof(Header) + path.size() + field(uint16_t{}, offsetof(Header, version_size));
  if (object.size() != payload_at + field(uint32_t{}, offsetof(Header, payload_size))) return std::nullopt;
  if (std::memcmp(at + sizeof(Header), path.data(), path.size()) != 0) return std::nullopt;
  return EnvelopeGlance{.epoch = field(uint64_t{}, offsetof(Header, epoch)),
                        .filled_at_ns = field(int64_t{}, offsetof(Header, filled_at_ns)),
                        .expires_at_ns = field(int64_t{}, offsetof(Header, expires_at_ns)),
                        .payload_at = payload_at};
}

}  // namespace ragfs
