// KeySpace: builds the provider keys of one namespace.
//
// Key = kind:namespace:account:hash. The hash is XXH3-128 over the normalised path, seeded with the hash of the backend
// identity, so that another directory or bucket mounted at the same place can never see old objects. The account is the
// first component of the path ("_" for the root). A namespace or account outside [A-Za-z0-9_-]{1,24} becomes "h_" and
// 22 characters of its hash. Keys are stable across processes.
// Thread-safety: immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ragfs/base/path.h"
#include "ragfs/cache/key.h"

namespace ragfs {

// What an object holds. The values are stored in envelopes: never renumber.
enum class ObjectKind : uint8_t { file = 1, listing = 2, subtree = 3 };

// The semantic boundary that `path` lies in, as the length of its prefix in bytes: /{account}/resources/<r>,
// /{account}/user/<space>, /{account}/agent/<space>, /{account}/session/<id>, /{account}/temp; elsewhere the account.
size_t scope_length(PathView path);

// The part of a key for a namespace or account: itself, or "h_" + 22 hash characters.
std::string encode_key_part(std::string_view part);

class KeySpace {
 public:
  explicit KeySpace(std::string_view name_space);

  CacheKey key(ObjectKind kind, uint64_t identity_hash, PathView path) const;
  // key().hash() without its text: what a hit in this process's memory takes.
  uint64_t key_hash(ObjectKind kind, uint64_t identity_hash, PathView path) const {
    return hash64(path.text(), identity_hash ^ kind_seeds_[static_cast<size_t>(kind) - 1]);
  }
  // What the keys of an account's objects begin with. Records are not among them: they keep older objects away.
  std::array<std::string, 2> object_prefixes(std::string_view account) const;
  // True for the keys of this namespace.
  bool owns(std::string_view key) const;
  const std::string& encoded_namespace() const { return namespace_; }

 private:
  // "file:ns:" and its like, padded, so that it is copied in one piece.
  struct Prefix {
    std::array<char, 40> text{};
    size_t size = 0;
  };

  std::string namespace_;
  std::array<Prefix, 3> prefixes_;      // of each ObjectKind, from 1
  std::array<uint64_t, 3> kind_seeds_;  // of each ObjectKind in this namespace
};

}  // namespace ragfs
