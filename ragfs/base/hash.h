// XXH3 under the project's own names.
//
// For: cache keys, checksums, table indexes. Not for: anything an attacker must not forge (use SHA-256 there).
// Thread-safety: pure functions.
#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace ragfs {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

inline uint64_t hash64(std::string_view bytes, uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

inline Hash128 hash128(std::string_view bytes, uint64_t seed = 0) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.high64, hash.low64};
}

// Finalises a 64-bit value so that all its bits depend on all input bits (the mixer of MurmurHash3, public domain).
inline uint64_t mix64(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

}  // namespace ragfs
