#include "ragfs/cache/key_space.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace ragfs {
namespace {

constexpr size_t kLongestPlainPart = 24;

constexpr std::array<bool, 256> kIsKeyChar = [] {
  std::array<bool, 256> is{};
  for (int c = '0'; c <= '9'; ++c) is[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) is[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) is[c] = true;
  is['_'] = is['-'] = true;
  return is;
}();

bool is_plain_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestPlainPart) return false;
  for (const char c : part) {
    if (!kIsKeyChar[static_cast<unsigned char>(c)]) return false;
  }
  // "h_..." of full length is what a hash looks like; such a name is hashed too, so that the two never meet.
  return !(part.size() == kLongestPlainPart && part.starts_with("h_"));
}

// The 32 hexadecimal digits of `hash`, all at once: each nibble in a byte of its own, then '0' or 'a' - 10 added.
inline void put_hex(char* out, const Hash128& hash) {
  using Bytes16 = uint8_t __attribute__((vector_size(16)));
  const std::array<uint64_t, 2> in_reading_order = {__builtin_bswap64(hash.high), __builtin_bswap64(hash.low)};
  const auto bytes = std::bit_cast<Bytes16>(in_reading_order);
  const Bytes16 high = bytes >> 4;
  const Bytes16 low = bytes & 15;
  const Bytes16 first = __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Bytes16 second =
      __builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  for (const Bytes16& nibbles : {first, second}) {
    const Bytes16 digits = nibbles + '0' + (static_cast<Bytes16>(nibbles > 9) & ('a' - 10 - '0'));
    std::memcpy(out, &digits, sizeof digits);
    out += sizeof digits;
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
  put_hex(hex.data(), hash);
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

KeySpace::KeySpace(std::string_view name_space) : namespace_(encode_key_part(name_space)) {
  constexpr std::string_view kNames[] = {"file:", "dir:", "subtree:"};  // in the order of ObjectKind
  for (size_t i = 0; i < prefixes_.size(); ++i) {
    const std::string prefix = std::string(kNames[i]) + namespace_ + ":";
    static_assert(std::string_view("subtree::").size() + kLongestPlainPart <= sizeof(Prefix::text));
    std::ranges::copy(prefix, prefixes_[i].text.begin());
    prefixes_[i].size = prefix.size();
    kind_seeds_[i] = hash64(prefix);
  }
}

bool KeySpace::owns(std::string_view key) const {
  return std::ranges::any_of(prefixes_, [&](const Prefix& prefix) {
    return key.starts_with(std::string_view(prefix.text.data(), prefix.size));
  });
}

CacheKey KeySpace::key(ObjectKind kind, uint64_t identity_hash, PathView path) const {
  const Hash128 hash = hash128(path.text(), identity_hash);
  return CacheKey::written(key_hash(kind, identity_hash, path), [&](char* const text) {
    const Prefix& prefix = prefixes_[static_cast<size_t>(kind) - 1];
    std::memcpy(text, prefix.text.data(), prefix.text.size());  // of a constant size: a few moves, no call
    char* out = text + prefix.size;
    const std::string_view account = first_component(path);
    if (is_plain_part(account)) {
      for (const char c : account) *out++ = c;
    } else {
      const std::string encoded = encode_key_part(account);
      out = std::ranges::copy(encoded, out).out;
    }
    *out++ = ':';
    put_hex(out, hash);
    return static_cast<size_t>(out + 32 - text);
  });
}

std::array<std::string, 2> KeySpace::object_prefixes(std::string_view account) const {
  const std::string part = encode_key_part(account);
  std::array<std::string, 2> out;
  for (size_t i = 0; const ObjectKind kind : {ObjectKind::file, ObjectKind::listing}) {
    const Prefix& prefix = prefixes_[static_cast<size_t>(kind) - 1];
    out[i++] = std::string(prefix.text.data(), prefix.size) + part + ":";
  }
  return out;
}

}  // namespace ragfs
