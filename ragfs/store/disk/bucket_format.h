// The disk tier's formats (docs/formats.md, "Disk tier"): records, bucket metas, tombstones and the owner file.
//
// For: encoding what the tier writes and deciding what may be believed of what it reads. Every structure has a magic, a
// version and a checksum; whatever does not match is refused, never guessed at. Change a structure: raise its version.
// Not for: I/O. Numbers are little-endian, as on every machine this runs on. Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/hash.h"

namespace ragfs {

static_assert(std::endian::native == std::endian::little, "the formats are written as they lie in memory");

inline constexpr size_t kBlockBytes = 4096;
inline constexpr uint32_t kDiskFormatVersion = 1;
inline constexpr size_t kMostRecordKeyBytes = 255;

constexpr uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// --- records: header, key, value; in the data file of a bucket ---

struct RecordHeader {
  uint32_t magic = 0;
  uint8_t version = 0;
  uint8_t flags = 0;  // kRecordPreferred
  uint16_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t reserved = 0;
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;  // since 1970; 0 = never
  uint64_t checksum = 0;      // XXH3-64 of header (before this field), key and value
};
static_assert(sizeof(RecordHeader) == 40, "on disk: raise kDiskFormatVersion");
inline constexpr uint8_t kRecordPreferred = 1;

struct RecordInfo {
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;
  uint8_t flags = 0;
};

constexpr size_t record_bytes(size_t key_bytes, size_t value_bytes) {
  return sizeof(RecordHeader) + key_bytes + value_bytes;
}
// Where a record of `bytes` goes when the file is filled up to `at`: behind it on the next multiple of 8 if it then
// ends in the same block, else on the next block. So a record of up to one block is read with one block.
constexpr uint64_t place_record(uint64_t at, size_t bytes) {
  const uint64_t start = round_up(at, 8);
  const uint64_t room = round_up(start, kBlockBytes) - start;
  return bytes <= room || room == 0 ? start : round_up(start, kBlockBytes);
}

// The header of this record, checksum included.
RecordHeader make_record_header(const RecordInfo& info, std::string_view key, std::string_view value);

struct DecodedRecord {
  RecordInfo info;
  std::string_view key;
  std::string_view value;
};
// `bytes` is exactly one record. An empty optional for whatever is not an intact one.
std::optional<DecodedRecord> decode_record(std::string_view bytes);

// --- meta: which records a bucket's data file holds ---

struct MetaEntry {
  uint64_t hash = 0;
  uint64_t generation = 0;
  int64_t expires_at_ms = 0;
  uint32_t offset = 0;
  uint32_t size = 0;  // of the record
};
static_assert(sizeof(MetaEntry) == 32, "on disk: raise kDiskFormatVersion");

struct MetaHeader {
  uint32_t magic = 0;
  uint32_t version = 0;
  uint64_t bucket = 0;
  uint64_t data_bytes = 0;  // length of the data file
  uint64_t oldest_generation = 0;
  uint64_t newest_generation = 0;
  Hash128 store;
  uint32_t count = 0;
  uint32_t reserved = 0;
  uint64_t checksum = 0;  // XXH3-64 of header (before this field) and entries
};
static_assert(sizeof(MetaHeader) == 72, "on disk: raise kDiskFormatVersion");

struct BucketMeta {
  MetaHeader header;
  std::vector<MetaEntry> entries;
};
// Fills in magic, version, counts, generations and checksum; `bucket`, `data_bytes` and `store` are the caller's.
std::string encode_meta(uint64_t bucket, uint64_t data_bytes, const Hash128& store, std::span<const MetaEntry> entries);
// Checks also that every record lies inside the data file and straddles no block it need not.
std::optional<BucketMeta> decode_meta(std::string_view bytes);

// --- tombstones: what was removed or replaced while a bucket still holds it ---

struct TombstoneHeader {
  uint32_t magic = 0;
  uint32_t version = 0;
  Hash128 store;
  uint64_t checksum = 0;
};
static_assert(sizeof(TombstoneHeader) == 32, "on disk: raise kDiskFormatVersion");

// Every copy of `hash` with this generation or an older one is dead.
struct Tombstone {
  uint64_t hash = 0;
  uint64_t generation = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(Tombstone) == 24, "on disk: raise kDiskFormatVersion");

TombstoneHeader make_tombstone_header(const Hash128& store);
Tombstone make_tombstone(const Hash128& store, uint64_t hash, uint64_t generation);

enum class TombstoneLogState : uint8_t {
  whole,
  torn,     // ends in part of a record or in zeros, as an interrupted write leaves it
  damaged,  // what was removed cannot be known any more
};
struct DecodedTombstones {
  TombstoneLogState state = TombstoneLogState::whole;
  std::vector<Tombstone> tombstones;
};
DecodedTombstones decode_tombstones(std::string_view bytes, const Hash128& store);

// --- owner: whose directory it is ---

struct OwnerRecord {
  uint32_t magic = 0;
  uint32_t version = 0;
  Hash128 store;              // random, made with the directory
  Hash128 incarnation;        // goes on from life to life while nothing acknowledged can be gone
  uint64_t start_number = 0;  // lives so far; the high bits of this life's generations
  uint64_t boot_hash = 0;     // of the machine's boot id
  uint32_t clean = 0;         // 1 after an orderly close
  uint32_t reserved = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(OwnerRecord) == 72, "on disk: raise kDiskFormatVersion");

// Fills in magic, version and checksum.
std::string encode_owner(OwnerRecord owner);
std::optional<OwnerRecord> decode_owner(std::string_view bytes);

}  // namespace ragfs
