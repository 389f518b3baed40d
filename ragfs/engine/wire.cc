#include "ragfs/engine/wire.h"

#include <zlib.h>

#include <bit>
#include <cstring>

namespace ragfs::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
template <typename T>
std::vector<T> values_of(std::string_view bytes, size_t count) {
  std::vector<T> out(count);
  if (count > 0) std::memcpy(out.data(), bytes.data(), count * sizeof(T));
  return out;
}

uint32_t add_crc32(uint32_t crc, std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

uint32_t checksum_of(FrameHeader header, std::string_view body) {
  header.checksum = 0;
  return add_crc32(add_crc32(0, bytes_of(header)), body);
}

std::unexpected<Error> bad(const char* what) { return fail(ErrorCode::invalid_data, what); }

}  // namespace

std::string make_frame(FrameHeader header, std::string_view body) {
  header.body_size = static_cast<uint32_t>(body.size());
  header.checksum = checksum_of(header, body);
  std::string out;
  out.reserve(sizeof header + body.size());
  out.append(bytes_of(header)).append(body);
  return out;
}

std::string request_body(std::span<const WireItem> items, std::span<const std::string_view> keys) {
  std::string out(bytes_of(items));
  for (const std::string_view key : keys) out.append(key);
  return out;
}

std::string answer_body(std::span<const WireResult> results, std::string_view message) {
  std::string out(bytes_of(results));
  out.append(message);
  return out;
}

Result<RequestView> read_request(const Frame& frame, uint64_t arena_bytes) {
  const size_t count = frame.header.count;
  if (count > kMaxItems || frame.body.size() < count * sizeof(WireItem)) return bad("a request shorter than its items");
  RequestView out;
  out.items = values_of<WireItem>(frame.body, count);
  out.keys.reserve(count);
  std::string_view rest = frame.body.substr(count * sizeof(WireItem));
  for (const WireItem& item : out.items) {
    if (item.key_size == 0 || item.key_size > 255 || item.key_size > rest.size()) return bad("a key of a wrong length");
    out.keys.push_back(rest.substr(0, item.key_size));
    rest.remove_prefix(item.key_size);
    const uint64_t used = item.size > item.capacity ? item.size : item.capacity;
    if (item.offset > arena_bytes || used > arena_bytes - item.offset) return bad("memory outside the arena");
  }
  if (!rest.empty()) return bad("a request longer than its items");
  return out;
}

Result<AnswerView> read_answer(const Frame& frame) {
  const size_t count = frame.header.count;
  if (count > kMaxItems || frame.body.size() < count * sizeof(WireResult)) return bad("an answer without its results");
  return AnswerView{values_of<WireResult>(frame.body, count), frame.body.substr(count * sizeof(WireResult))};
}

Result<Frame> read_frame(std::string_view packet) {
  Frame frame;
  if (packet.size() < sizeof(FrameHeader)) return bad("a packet shorter than a frame's header");
  std::memcpy(&frame.header, packet.data(), sizeof(FrameHeader));
  frame.body = packet.substr(sizeof(FrameHeader));
  if (frame.header.magic != kFrameMagic) return bad("a packet that is no frame");
  if (frame.header.version != kWireVersion) return bad("a frame of another version");
  if (frame.header.body_size != frame.body.size() || frame.body.size() > kMaxBodyBytes) {
    return bad("a frame of a wrong size");
  }
  if (frame.header.checksum != checksum_of(frame.header, frame.body)) return bad("a frame with a wrong checksum");
  return frame;
}

}  // namespace ragfs::engine
