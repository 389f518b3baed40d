// Epoch pointer, clean marker and witness: any bytes are decoded or refused without a crash, bare or well sealed; what
// decodes is encoded to the same bytes.
#include <cstdlib>
#include <string_view>

#include "ragfs/cache/lives/clean_marker.h"
#include "ragfs/cache/lives/epoch_pointer.h"
#include "ragfs/cache/lives/sealed_record.h"
#include "ragfs/cache/lives/witness.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void decode(std::string_view text) {
  if (const auto pointer = ragfs::decode_epoch_pointer(text)) require(ragfs::encode_epoch_pointer(*pointer) == text);
  if (const auto witness = ragfs::decode_witness(text)) require(ragfs::encode_witness(*witness) == text);
  if (const auto marker = ragfs::decode_clean_marker(text)) require(ragfs::encode_clean_marker(*marker) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  decode(bytes);
  // With the right checksum, so that what is behind it is reached: "RGFP", "RGFM", "RGFW".
  for (const uint32_t magic : {0x50464752U, 0x57464752U}) decode(ragfs::seal_record(magic, 1, bytes));
  decode(ragfs::seal_record(0x4d464752U, ragfs::kCleanMarkerVersion, bytes));
  return 0;
}
