#include "ragfs/providers/engine/value_seal.h"

#include <cstring>

#include "ragfs/base/hash.h"

namespace ragfs::engine {
namespace {

constexpr uint32_t kMagic = 0x31564752;  // "RGV1"

struct Seal {
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(Seal) == kSealBytes);

uint64_t checksum_of(uint32_t kind, std::string_view key, std::string_view header, std::string_view payload) {
  const uint64_t whose = hash64(key, header.size() + payload.size());
  if (kind == static_cast<uint32_t>(SealKind::key_and_size)) return whose;
  if (header.empty()) return hash64(payload, whose);
  XXH3_state_t state;  // the two parts are one value to whoever reads it
  XXH3_64bits_reset_withSeed(&state, whose);
  XXH3_64bits_update(&state, header.data(), header.size());
  XXH3_64bits_update(&state, payload.data(), payload.size());
  return XXH3_64bits_digest(&state);
}

}  // namespace

std::string make_seal(SealKind kind, std::string_view key, std::string_view header, std::string_view payload) {
  Seal seal;
  seal.kind = static_cast<uint32_t>(kind);
  seal.checksum = checksum_of(seal.kind, key, header, payload);
  return {reinterpret_cast<const char*>(&seal), sizeof seal};
}

bool seal_is_intact(std::string_view key, std::string_view sealed) {
  Seal seal;
  if (sealed.size() < sizeof seal) return false;
  std::memcpy(&seal, sealed.data(), sizeof seal);
  if (seal.magic != kMagic || seal.kind < 1 || seal.kind > 2) return false;
  return seal.checksum == checksum_of(seal.kind, key, "", sealed.substr(sizeof seal));
}

}  // namespace ragfs::engine
