#include "ragfs/cache/lives/sealed_record.h"

#include <bit>
#include <cassert>
#include <cstddef>

#include "ragfs/base/hash.h"

namespace ragfs {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and written as it lies");

struct Frame {
  uint32_t magic;
  uint8_t version;
  uint8_t reserved[3];
  uint32_t body_size;
  uint32_t reserved_too;
  uint64_t checksum;
};
static_assert(sizeof(Frame) == 24);

// Of everything but itself: the head seeds the hash of the body.
uint64_t checksum_of(std::string_view text) {
  const uint64_t head = hash64(text.substr(0, offsetof(Frame, checksum)));
  return hash64(text.substr(sizeof(Frame)), head);
}

}  // namespace

std::string seal_record(uint32_t magic, uint8_t version, std::string_view body) {
  assert(body.size() <= UINT32_MAX);
  Frame frame{};
  frame.magic = magic;
  frame.version = version;
  frame.body_size = static_cast<uint32_t>(body.size());
  std::string text(reinterpret_cast<const char*>(&frame), sizeof frame);
  text.append(body);
  frame.checksum = checksum_of(text);
  std::memcpy(text.data() + offsetof(Frame, checksum), &frame.checksum, sizeof frame.checksum);
  return text;
}

std::optional<std::string_view> open_record(uint32_t magic, uint8_t version, std::string_view text) {
  if (text.size() < sizeof(Frame)) return std::nullopt;
  Frame frame;
  std::memcpy(&frame, text.data(), sizeof frame);
  if (frame.magic != magic || frame.version != version) return std::nullopt;
  if (text.size() != sizeof(Frame) + frame.body_size || frame.checksum != checksum_of(text)) return std::nullopt;
  return text.substr(sizeof(Frame));
}

}  // namespace ragfs
