// feed_in_pieces: gives bytes to a RESP parser as a socket would, for its unit test and its fuzzer.
// Thread-safety: a pure function over what it is given.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "ragfs/providers/redis/resp_parser.h"

namespace ragfs::redis {

// `bytes` in pieces of `piece` at most; each whole reply goes to `take`. False when the parser refuses them.
template <typename Take>
bool feed_in_pieces(RespParser& parser, std::string_view bytes, size_t piece, const Take& take) {
  while (!bytes.empty()) {
    const std::span<char> space = parser.space();
    const size_t count = std::min({piece, bytes.size(), space.size()});
    if (count == 0) return false;
    std::memcpy(space.data(), bytes.data(), count);
    parser.commit(count);
    bytes.remove_prefix(count);
    while (true) {
      auto reply = parser.next();
      if (!reply) return false;
      if (!reply->has_value()) break;
      take(**reply);
    }
  }
  return true;
}

}  // namespace ragfs::redis
