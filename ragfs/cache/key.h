// CacheKey: the name of an object in a provider.
//
// Text: "file:{namespace}:{account}:{hash}", "dir:...", "subtree:...", "epoch:{namespace}", "clean:{namespace}:{life}",
// at most 128 characters of [A-Za-z0-9:_-] (a limit of openYuanrong). The hash is XXH3-128 of backend identity and
// path. Not for: building keys (KeySpace does that). Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "ragfs/base/hash.h"

namespace ragfs {

inline constexpr size_t kMaxKeyBytes = 128;

class CacheKey {
 public:
  CacheKey() = default;
  // `text` must be 1 to 128 characters; longer text is cut (asserted in debug builds).
  explicit CacheKey(std::string_view text) : CacheKey(text, hash64(text)) {}
  // With a hash that the caller has already: equal text must always come with an equal hash.
  CacheKey(std::string_view text, uint64_t hash)
      : hash_(hash), size_(static_cast<uint8_t>(text.size() < kMaxKeyBytes ? text.size() : kMaxKeyBytes)) {
    std::memcpy(text_.data(), text.data(), size_);
  }

  // Written in place: `write(char* out)` puts at most kMaxKeyBytes characters at `out` and returns how many. Saves the
  // hit path a copy.
  template <typename Write>
  static CacheKey written(uint64_t hash, const Write& write) {
    CacheKey key;
    key.hash_ = hash;
    key.size_ = static_cast<uint8_t>(write(key.text_.data()));
    return key;
  }

  std::string_view text() const noexcept { return {text_.data(), size_}; }
  // Well mixed; for a provider's own index.
  uint64_t hash() const noexcept { return hash_; }
  friend bool operator==(const CacheKey& a, const CacheKey& b) noexcept {
    return a.hash_ == b.hash_ && a.text() == b.text();
  }

 private:
  uint64_t hash_ = 0;
  uint8_t size_ = 0;
  std::array<char, kMaxKeyBytes> text_;  // not zeroed: a key is made on every hit
};

// The account in the text of an object's key ("kind:namespace:account:hash"); "" where there is none.
inline std::string_view account_of_key(std::string_view key) noexcept {
  const size_t name_space = key.find(':');
  if (name_space == std::string_view::npos) return {};
  const size_t account = key.find(':', name_space + 1);
  if (account == std::string_view::npos) return {};
  const size_t end = key.find(':', account + 1);
  return end == std::string_view::npos ? std::string_view() : key.substr(account + 1, end - account - 1);
}

}  // namespace ragfs
