// RespValue: one reply of a Redis server, RESP2 and RESP3 alike.
//
// For: what RespParser gives. A map is an array of keys and values in turn, a set is an array; doubles, big numbers and
// verbatim text stay text. Not for: cache objects (a bulk reply's bytes are handed on without a copy).
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ragfs/base/bytes.h"

namespace ragfs::redis {

enum class RespType : uint8_t {
  status,   // +OK
  error,    // -ERR ..., and RESP3's blob error
  integer,  // also RESP3's booleans
  text,     // bulk and verbatim strings, doubles, big numbers
  null,
  array,  // also maps and sets
  push,   // out of band: belongs to no request
};

struct RespValue {
  RespType type = RespType::null;
  int64_t integer = 0;
  Bytes text;  // status, error, text
  std::vector<RespValue> items;

  bool is_null() const { return type == RespType::null; }
  bool is_error() const { return type == RespType::error; }
  bool is_status(std::string_view expected) const { return type == RespType::status && text.view() == expected; }
  bool is_array() const { return type == RespType::array; }
};

}  // namespace ragfs::redis
