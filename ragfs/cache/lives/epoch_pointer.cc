#include "ragfs/cache/lives/epoch_pointer.h"

#include "ragfs/cache/lives/sealed_record.h"

namespace ragfs {
namespace {

constexpr uint32_t kMagic = 0x50464752;  // "RGFP"
constexpr uint8_t kVersion = 1;

}  // namespace

CacheKey epoch_pointer_key(std::string_view encoded_namespace) {
  return CacheKey("epoch:" + std::string(encoded_namespace));
}

std::string encode_epoch_pointer(const EpochPointer& pointer) {
  FieldWriter body;
  body.number(pointer.life);
  body.number(pointer.epoch);
  body.number(pointer.written_at_ns);
  body.text(pointer.writer);
  return seal_record(kMagic, kVersion, std::move(body).take());
}

std::optional<EpochPointer> decode_epoch_pointer(std::string_view text) {
  const std::optional<std::string_view> body = open_record(kMagic, kVersion, text);
  if (!body) return std::nullopt;
  FieldReader fields(*body);
  EpochPointer pointer;
  pointer.life = fields.number<uint64_t>();
  pointer.epoch = fields.number<uint64_t>();
  pointer.written_at_ns = fields.number<int64_t>();
  pointer.writer = fields.text();
  if (!fields.done() || pointer.life == 0) return std::nullopt;
  return pointer;
}

}  // namespace ragfs
