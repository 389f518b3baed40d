// RespParser: bytes of a Redis connection in, replies out.
//
// Incremental: the caller receives into space(), says how much came with commit(), and asks next() until it has no
// complete reply. A large bulk string is received straight into the memory that becomes its Bytes. Bounded: line, bulk,
// nesting, elements and bytes of one reply; what exceeds a bound or is no RESP makes the stream unusable for good.
// Not for: telling what an error reply means (reply_error.h).
// Thread-safety: none; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"
#include "ragfs/providers/redis/resp_value.h"

namespace ragfs::redis {

struct RespLimits {
  size_t max_line_bytes = 16 << 10;    // statuses, errors, headers
  size_t max_bulk_bytes = 512U << 20;  // what Redis itself allows
  size_t max_reply_bytes = 1U << 30;   // bulk strings of one reply together
  size_t max_elements = 1U << 20;      // of one reply, nested ones included
  size_t max_depth = 8;
};

class RespParser {
 public:
  explicit RespParser(RespLimits limits = {});

  // Where the next bytes go; never empty. Valid until the next call.
  std::span<char> space();
  // The first `count` bytes of space() have been filled.
  void commit(size_t count);
  // The next complete reply; nothing when more bytes are needed. Errors: invalid_data, from then on always.
  Result<std::optional<RespValue>> next();

 private:
  struct Open {  // an aggregate whose elements are still coming
    RespValue value;
    size_t missing;
    bool attribute;  // RESP3 attributes are read and dropped
  };
  struct LargeBulk {
    ByteBuffer buffer;
    size_t size;
    size_t filled;
    RespType type;
    bool verbatim;
  };
  enum class Step : uint8_t { need_bytes, opened, value };

  std::string_view unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  std::unexpected<Error> broken(std::string_view why);
  Result<Step> read_element(RespValue& value);
  Result<Step> read_bulk(std::string_view line, size_t header_size, RespValue& value);
  Result<Step> finish_large(RespValue& value);
  Result<Step> open_aggregate(char kind, std::string_view line, RespValue& value);
  // Puts a finished value where it belongs; true when it completes the reply, which is then in `value`.
  bool place(RespValue& value);

  const RespLimits limits_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<Open> open_;
  std::optional<LargeBulk> large_;
  size_t elements_ = 0;     // of the reply that is being read
  size_t reply_bytes_ = 0;  // likewise
  bool broken_ = false;
};

}  // namespace ragfs::redis
