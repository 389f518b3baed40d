// Frames of an engine host: any bytes are taken apart or refused without a crash, and what is taken apart is inside.
#include <cstdlib>
#include <string>
#include <string_view>

#include "ragfs/engine/wire.h"

namespace {

void take_apart(std::string_view packet) {
  constexpr uint64_t kArena = 1 << 20;
  const auto frame = ragfs::engine::read_frame(packet);
  if (!frame) return;
  if (const auto request = ragfs::engine::read_request(*frame, kArena)) {
    if (request->items.size() != request->keys.size()) std::abort();
    for (const auto& item : request->items) {
      if (item.offset + item.size > kArena || item.offset + item.capacity > kArena) std::abort();
    }
  }
  if (const auto answer = ragfs::engine::read_answer(*frame)) {
    if (answer->message.size() > frame->body.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  take_apart(bytes);
  // A checksum is not found by chance: the same bytes as the body of a frame that is whole.
  if (size < 4 || size > ragfs::engine::kMaxBodyBytes) return 0;
  ragfs::engine::FrameHeader header;
  header.op = static_cast<uint16_t>(data[0] | (data[1] << 8));
  header.count = static_cast<uint32_t>(data[2] | (data[3] << 8));
  take_apart(ragfs::engine::make_frame(header, bytes.substr(4)));
  return 0;
}
