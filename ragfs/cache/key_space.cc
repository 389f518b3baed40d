#include "ragfs/cache/key_space.h"

#include <array>
#include <cstring>

namespace ragfs {
namespace {

constexpr size_t kLongestPlainPart = 24;

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_plain_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestPlainPart) return false;
  for (const char c : part) {
    if (!is_key_char(c)) return false;
  }
  // "h_..." of full length is what a hash looks like; such a name is hashed too, so that the two never meet.
  return !(part.size() == kLongestPlainPart && part.starts_with("h_"));
}

void put_hex(char* out, uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 15; i >= 0; --i) {
    out[i] = kDigits[value & 15];
    value >>= 4;
  }
}

std::string_view first_component(PathView path) {
  if (path.is_root()) return "_";
  const std::string_view rest = path.text().substr(1);
  return rest.substr(0, rest.find('/'));
}

}  // namespace

std::string encode_key_part(std::string_view part) {
  if (is_plain_part(part)) return std::string(part);
  const Hash128 hash = hash128(part);
  std::array<char, 32> hex{};
  put_hex(hex.data(), hash.high);
  put_hex(hex.data() + 16, hash.low);
  return "h_" + std::string(hex.data(), 22);
}

size_t scope_length(PathView path) {
  const std::string_view text = path.text();
  const size_t account_end = text.find('/', 1);
  if (account_end == std::string_view::npos) return text.size();
  const size_t kind_end = std::min(text.find('/', account_end + 1), text.size());
  const std::string_view kind = text.substr(account_end + 1, kind_end - account_end - 1);
  if (kind == "temp") return kind_end;
  const bool named = kind == "resources" || kind == "user" || kind == "agent" || kind == "session";
  if (!named || kind_end == text.size()) return account_end;
  return std::min(text.find('/', kind_end + 1), text.size());
}

KeySpace::KeySpace(std::string_view name_space)
    : namespace_(encode_key_part(name_space)),
      file_prefix_("file:" + namespace_ + ":"),
      listing_prefix_("dir:" + namespace_ + ":"),
      subtree_prefix_("subtree:" + namespace_ + ":"),
      namespace_hash_(hash64(namespace_)) {}

bool KeySpace::owns(std::string_view key) const {
  return key.starts_with(file_prefix_) || key.starts_with(listing_prefix_) || key.starts_with(subtree_prefix_);
}

CacheKey KeySpace::key(ObjectKind kind, uint64_t identity_hash, PathView path) const {
  const std::string& prefix = kind == ObjectKind::file      ? file_prefix_
                              : kind == ObjectKind::listing ? listing_prefix_
                                                            : subtree_prefix_;
  std::array<char, kMaxKeyBytes> text;  // not zeroed: this runs on every hit
  char* out = text.data();
  std::memcpy(out, prefix.data(), prefix.size());
  out += prefix.size();
  const std::string_view account = first_component(path);
  if (is_plain_part(account)) {
    std::memcpy(out, account.data(), account.size());
    out += account.size();
  } else {
    const std::string encoded = encode_key_part(account);
    std::memcpy(out, encoded.data(), encoded.size());
    out += encoded.size();
  }
  *out++ = ':';
  const Hash128 hash = hash128(path.text(), identity_hash);
  put_hex(out, hash.high);
  put_hex(out + 16, hash.low);
  out += 32;
  // The kind is the only part of the key that the path hash does not cover (the namespace is one per provider use).
  const uint64_t key_hash = mix64(hash.low ^ (static_cast<uint64_t>(kind) << 56) ^ namespace_hash_);
  return CacheKey({text.data(), static_cast<size_t>(out - text.data())}, key_hash);
}

}  // namespace ragfs
