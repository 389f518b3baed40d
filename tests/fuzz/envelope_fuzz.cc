// The cache envelope: any bytes are decoded or refused without a crash; what was encoded decodes to itself; one damaged
// byte anywhere is noticed.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ragfs/base/path.h"
#include "ragfs/cache/envelope.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void decode_foreign(std::string_view object) {
  const auto loose = ragfs::decode_envelope(object, false);
  const auto strict = ragfs::decode_envelope(object, true);
  require(loose.has_value() || !strict.has_value());
  if (!loose) return;
  const size_t sum = loose->info.path.size() + loose->info.version.size() + loose->payload.size();
  require(sum < object.size());
  require(loose->payload.data() + loose->payload.size() == object.data() + object.size());
}

// The bytes choose fields, version, payload and the byte to damage.
void round_trip(std::string_view bytes) {
  if (bytes.size() < 24) return;
  uint64_t seed[3];
  std::memcpy(seed, bytes.data(), sizeof seed);
  bytes.remove_prefix(sizeof seed);
  const size_t version_size = bytes.empty() ? 0 : seed[0] % bytes.size();
  const auto path = ragfs::Path::parse(bytes.substr(0, bytes.size() / 2));
  ragfs::EnvelopeInfo info;
  info.kind = static_cast<ragfs::ObjectKind>(1 + seed[1] % 3);
  info.epoch = seed[0];
  info.stamp = seed[1];
  info.filled_at_ns = static_cast<int64_t>(seed[2]);
  info.expires_at_ns = static_cast<int64_t>(seed[2] ^ seed[0]);
  info.size = seed[0] ^ seed[2];
  info.path = path ? std::string_view(path->text()) : "/";
  info.version = bytes.substr(0, version_size);
  const std::string_view payload = bytes.substr(version_size);
  std::string object = ragfs::encode_envelope(info, payload);
  require(object.size() == ragfs::envelope_overhead_bytes(info));
  object.append(payload);
  const auto decoded = ragfs::decode_envelope(object, true);
  require(decoded.has_value());
  require(decoded->payload == payload && decoded->info.path == info.path && decoded->info.version == info.version);
  require(decoded->info.kind == info.kind && decoded->info.epoch == info.epoch && decoded->info.stamp == info.stamp);
  require(decoded->info.expires_at_ns == info.expires_at_ns && decoded->info.size == info.size);
  object[seed[2] % object.size()] ^= static_cast<char>(1 + seed[1] % 255);
  require(!ragfs::decode_envelope(object, true).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode_foreign(bytes);
  round_trip(bytes);
  return 0;
}
