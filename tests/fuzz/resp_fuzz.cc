// The RESP parser: any bytes are parsed or refused without a crash; how they are cut into pieces changes nothing.
#include <cstdlib>
#include <string>
#include <string_view>

#include "ragfs/providers/redis/reply_error.h"
#include "ragfs/providers/redis/testing_resp.h"

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
  const bool good = ragfs::redis::feed_in_pieces(parser, bytes, piece, [&](const RespValue& reply) {
    show(reply, out);
    if (reply.is_error()) (void)ragfs::redis::parse_redirect(reply.text.view());
  });
  // Room for more is always there until a reply is refused.
  if (!good && parser.space().empty()) std::abort();
  return good ? out : out + "!";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (parse(bytes, size + 1) != parse(bytes, 1)) std::abort();
  if (parse(bytes, 7) != parse(bytes, 4096)) std::abort();
  return 0;
}
