// The RESP parser: any bytes are parsed or refused without a crash; how they are cut into pieces changes nothing.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ragfs/providers/redis/reply_error.h"
#include "ragfs/providers/redis/resp_parser.h"

namespace {

using ragfs::redis::RespValue;

void show(const RespValue& value, std::string& out) {
  out += static_cast<char>('a' + static_cast<int>(value.type));
  out += std::to_string(value.integer);
  out.append(value.text.view());
  for (const RespValue& at : value.items) show(at, out);
  out += ')';
}

std::string parse(std::string_view bytes, size_t piece) {
  ragfs::redis::RespParser parser({.max_bulk_bytes = 1 << 16, .max_reply_bytes = 1 << 17, .max_elements = 1000});
  std::string out;
  while (!bytes.empty()) {
    const std::span<char> space = parser.space();
    if (space.empty()) std::abort();
    const size_t count = std::min({piece, bytes.size(), space.size()});
    std::memcpy(space.data(), bytes.data(), count);
    parser.commit(count);
    bytes.remove_prefix(count);
    for (;;) {
      auto reply = parser.next();
      if (!reply) return out + "!";
      if (!reply->has_value()) break;
      show(**reply, out);
      if ((*reply)->is_error()) (void)ragfs::redis::parse_redirect((*reply)->text.view());
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (parse(bytes, size + 1) != parse(bytes, 1)) std::abort();
  if (parse(bytes, 7) != parse(bytes, 4096)) std::abort();
  return 0;
}
