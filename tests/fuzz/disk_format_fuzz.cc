// The disk tier's files: any bytes are decoded or refused without a crash, bare or with their checksums made right;
// what a meta lists lies inside its data file.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ragfs/store/disk/bucket_format.h"

namespace ragfs {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void decode(std::string_view bytes) {
  if (const auto record = decode_record(bytes)) {
    require(record_bytes(record->key.size(), record->value.size()) == bytes.size());
    require(record->value.data() + record->value.size() == bytes.data() + bytes.size());
  }
  if (const auto meta = decode_meta(bytes)) {
    for (const MetaEntry& entry : meta->entries) {
      require(uint64_t{entry.offset} + entry.size <= meta->header.data_bytes && entry.size > sizeof(RecordHeader));
    }
  }
  if (const auto owner = decode_owner(bytes)) require(encode_owner(*owner) == bytes);
  const DecodedTombstones log = decode_tombstones(bytes, Hash128{1, 2});
  require(log.tombstones.size() * sizeof(Tombstone) <= bytes.size());
}

// Behind a right checksum: what an attacker, or a bug, could write.
void decode_sealed(std::string_view bytes) {
  if (bytes.size() >= sizeof(RecordHeader)) {
    RecordHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::string_view rest = bytes.substr(sizeof header);
    const std::string_view key = rest.substr(0, header.key_size % (kMostRecordKeyBytes + 2));
    const RecordHeader good =
        make_record_header({header.generation, header.expires_at_ms, header.flags}, key, rest.substr(key.size()));
    std::string record(reinterpret_cast<const char*>(&good), sizeof good);
    decode(record.append(rest));
  }
  std::vector<MetaEntry> entries(bytes.size() / sizeof(MetaEntry));
  if (entries.empty()) return;
  std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(MetaEntry));
  decode(encode_meta(entries[0].hash, entries[0].generation, Hash128{1, 2}, entries));
  const TombstoneHeader header = make_tombstone_header(Hash128{1, 2});
  decode(std::string(reinterpret_cast<const char*>(&header), sizeof header).append(bytes));
}

}  // namespace
}  // namespace ragfs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ragfs::decode(bytes);
  ragfs::decode_sealed(bytes);
  return 0;
}
