#include "ragfs/store/disk/bucket_format.h"

#include <algorithm>
#include <cstring>

namespace ragfs {
namespace {

constexpr uint32_t magic_of(const char (&text)[5]) {
  return static_cast<uint32_t>(text[0]) | static_cast<uint32_t>(text[1]) << 8 | static_cast<uint32_t>(text[2]) << 16 |
         static_cast<uint32_t>(text[3]) << 24;
}
constexpr uint32_t kRecordMagic = magic_of("RGD1");
constexpr uint32_t kMetaMagic = magic_of("RGM1");
constexpr uint32_t kTombstoneMagic = magic_of("RGT1");
constexpr uint32_t kOwnerMagic = magic_of("RGO1");

// All of a structure before its checksum, which is its last field.
template <typename T>
std::string_view covered(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T) - sizeof(uint64_t)};
}
template <typename T>
std::string_view whole(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
template <typename T>
T read_as(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

uint64_t record_checksum(const RecordHeader& header, std::string_view key, std::string_view value) {
  return hash64(value, hash64(key, hash64(covered(header))));
}

uint64_t meta_checksum(const MetaHeader& header, std::string_view entries) {
  return hash64(entries, hash64(covered(header)));
}

bool entry_is_possible(const MetaEntry& entry, uint64_t data_bytes) {
  if (entry.size <= sizeof(RecordHeader) || entry.offset % 8 != 0) return false;
  if (uint64_t{entry.offset} + entry.size > data_bytes) return false;
  return place_record(entry.offset, entry.size) == entry.offset;
}

}  // namespace

RecordHeader make_record_header(const RecordInfo& info, std::string_view key, std::string_view value) {
  RecordHeader header;
  header.magic = kRecordMagic;
  header.version = kDiskFormatVersion;
  header.flags = info.flags;
  header.key_size = static_cast<uint16_t>(key.size());
  header.value_size = static_cast<uint32_t>(value.size());
  header.generation = info.generation;
  header.expires_at_ms = info.expires_at_ms;
  header.checksum = record_checksum(header, key, value);
  return header;
}

std::optional<DecodedRecord> decode_record(std::string_view bytes) {
  if (bytes.size() <= sizeof(RecordHeader)) return std::nullopt;
  const auto header = read_as<RecordHeader>(bytes);
  if (header.magic != kRecordMagic || header.version != kDiskFormatVersion) return std::nullopt;
  if (header.key_size == 0 || header.key_size > kMostRecordKeyBytes) return std::nullopt;
  if (record_bytes(header.key_size, header.value_size) != bytes.size()) return std::nullopt;
  const std::string_view key = bytes.substr(sizeof(RecordHeader), header.key_size);
  const std::string_view value = bytes.substr(sizeof(RecordHeader) + header.key_size);
  if (record_checksum(header, key, value) != header.checksum) return std::nullopt;
  return DecodedRecord{{header.generation, header.expires_at_ms, header.flags}, key, value};
}

std::string encode_meta(uint64_t bucket, uint64_t data_bytes, const Hash128& store,
                        std::span<const MetaEntry> entries) {
  MetaHeader header;
  header.magic = kMetaMagic;
  header.version = kDiskFormatVersion;
  header.bucket = bucket;
  header.data_bytes = data_bytes;
  header.store = store;
  header.count = static_cast<uint32_t>(entries.size());
  header.oldest_generation = UINT64_MAX;
  for (const MetaEntry& entry : entries) {
    header.oldest_generation = std::min(header.oldest_generation, entry.generation);
    header.newest_generation = std::max(header.newest_generation, entry.generation);
  }
  const std::string_view body(reinterpret_cast<const char*>(entries.data()), entries.size_bytes());
  header.checksum = meta_checksum(header, body);
  std::string out(whole(header));
  out.append(body);
  return out;
}

std::optional<BucketMeta> decode_meta(std::string_view bytes) {
  if (bytes.size() < sizeof(MetaHeader)) return std::nullopt;
  BucketMeta meta;
  meta.header = read_as<MetaHeader>(bytes);
  const MetaHeader& header = meta.header;
  if (header.magic != kMetaMagic || header.version != kDiskFormatVersion || header.count == 0) return std::nullopt;
  const std::string_view body = bytes.substr(sizeof(MetaHeader));
  if (body.size() != uint64_t{header.count} * sizeof(MetaEntry)) return std::nullopt;
  if (meta_checksum(header, body) != header.checksum) return std::nullopt;
  meta.entries.resize(header.count);
  std::memcpy(meta.entries.data(), body.data(), body.size());
  const auto impossible = [&](const MetaEntry& entry) { return !entry_is_possible(entry, header.data_bytes); };
  if (std::any_of(meta.entries.begin(), meta.entries.end(), impossible)) return std::nullopt;
  return meta;
}

TombstoneHeader make_tombstone_header(const Hash128& store) {
  TombstoneHeader header;
  header.magic = kTombstoneMagic;
  header.version = kDiskFormatVersion;
  header.store = store;
  header.checksum = hash64(covered(header));
  return header;
}

Tombstone make_tombstone(const Hash128& store, uint64_t hash, uint64_t generation) {
  Tombstone tombstone{hash, generation, 0};
  tombstone.checksum = hash64(covered(tombstone), store.low);
  return tombstone;
}

DecodedTombstones decode_tombstones(std::string_view bytes, const Hash128& store) {
  DecodedTombstones out;
  const TombstoneHeader expected = make_tombstone_header(store);
  if (bytes.substr(0, sizeof(TombstoneHeader)) != whole(expected)) {
    out.state = TombstoneLogState::damaged;
    return out;
  }
  bytes.remove_prefix(sizeof(TombstoneHeader));
  while (bytes.size() >= sizeof(Tombstone)) {
    const auto tombstone = read_as<Tombstone>(bytes);
    if (tombstone.checksum != make_tombstone(store, tombstone.hash, tombstone.generation).checksum) break;
    out.tombstones.push_back(tombstone);
    bytes.remove_prefix(sizeof(Tombstone));
  }
  if (bytes.empty()) return out;
  const bool only_zeros = bytes.find_first_not_of('\0') == std::string_view::npos;
  out.state = bytes.size() < sizeof(Tombstone) || only_zeros ? TombstoneLogState::torn : TombstoneLogState::damaged;
  return out;
}

std::string encode_owner(OwnerRecord owner) {
  owner.magic = kOwnerMagic;
  owner.version = kDiskFormatVersion;
  owner.checksum = hash64(covered(owner));
  return std::string(whole(owner));
}

std::optional<OwnerRecord> decode_owner(std::string_view bytes) {
  if (bytes.size() != sizeof(OwnerRecord)) return std::nullopt;
  const auto owner = read_as<OwnerRecord>(bytes);
  if (owner.magic != kOwnerMagic || owner.version != kDiskFormatVersion) return std::nullopt;
  if (owner.checksum != hash64(covered(owner)) || owner.clean > 1) return std::nullopt;
  return owner;
}

}  // namespace ragfs
