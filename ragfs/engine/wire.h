// Wire format between the engine provider and an engine host (docs/formats.md, "Engine frames").
//
// A frame is a header of 48 bytes and a body. Requests carry items and their keys, answers carry results and a
// sentence; values do not travel: they lie in the memory that both sides share, at the items' offsets. Numbers are
// little-endian, structures have no padding. A frame is one packet of a SOCK_SEQPACKET socket. For: taking bytes apart
// and putting them together. Not for: sockets, or what a frame means to an engine. Thread-safety: pure functions on
// values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ragfs/base/error.h"

namespace ragfs::engine {

inline constexpr uint32_t kFrameMagic = 0x31454752;  // "RGE1"
inline constexpr uint16_t kWireVersion = 1;
inline constexpr uint32_t kMaxBodyBytes = 96 << 10;  // what a packet can hold
inline constexpr uint32_t kMaxItems = 256;

// What a frame asks for. An answer has the code of its request and kAnswerBit.
enum class Op : uint16_t {
  hello = 1,   // body: options, "name=value" each ended by a 0; the answer's body: see HelloAnswer
  ping = 2,    // answered by the host itself
  health = 3,  // asks the engine
  get = 4,
  put = 5,
  erase = 6,
  put_if_absent_tx = 7,
  warnings = 8,  // the answer's message: a sentence a line
};
inline constexpr uint16_t kAnswerBit = 0x8000;

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint16_t version = kWireVersion;
  uint16_t op = 0;
  uint64_t id = 0;           // of the request; its answer has the same
  uint64_t incarnation = 0;  // answers: a hash of the engine's incarnation when the answer was made
  int64_t timeout_ms = 0;    // requests: how long the asker waits
  uint32_t count = 0;        // items or results
  uint32_t body_size = 0;
  int32_t status = 0;     // answers: of the whole (hello, health)
  uint32_t checksum = 0;  // CRC-32 of the header with 0 here, and of the body
};
static_assert(sizeof(FrameHeader) == 48);

// One key of a request; the keys follow the items, one after the other.
struct WireItem {
  uint64_t offset = 0;    // into the shared memory
  uint32_t size = 0;      // put: bytes of the value
  uint32_t capacity = 0;  // get: bytes there are
  int64_t ttl_ms = 0;
  uint32_t flags = 0;
  uint32_t key_size = 0;
};
static_assert(sizeof(WireItem) == 32);

struct WireResult {
  int32_t status = 0;
  uint32_t size = 0;
  int32_t engine_code = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(WireResult) == 16);

// The body of the answer to hello, before its sentence (name and version of engine and host, or what is wrong).
struct HelloAnswer {
  uint32_t wire_version = kWireVersion;
  uint32_t native_ttl = 0;
  uint32_t atomic_put = 0;
  uint32_t whole_values = 0;
  uint32_t may_resurrect = 0;
  uint32_t outlives_process = 0;
  uint32_t max_batch_keys = 1;
  uint32_t reserved = 0;
  uint64_t max_value_bytes = 0;
};
static_assert(sizeof(HelloAnswer) == 40);

// A whole frame: its body is `body`, of at most kMaxBodyBytes; size and checksum are filled in.
std::string make_frame(FrameHeader header, std::string_view body);
// At most kMaxItems items, with the key of each, whose key_size it is.
std::string request_body(std::span<const WireItem> items, std::span<const std::string_view> keys);
// A result for each item of the request, and a sentence of at most 64 KiB.
std::string answer_body(std::span<const WireResult> results, std::string_view message);

struct Frame {
  FrameHeader header;
  std::string_view body;  // of the packet
  bool is_answer() const { return (header.op & kAnswerBit) != 0; }
  Op op() const { return static_cast<Op>(header.op & ~kAnswerBit); }
};

struct RequestView {
  std::vector<WireItem> items;
  std::vector<std::string_view> keys;  // of the frame's memory
};
// Errors: invalid_data: sizes that do not add up, a key of no or more than 255 bytes, memory outside `arena_bytes`.
Result<RequestView> read_request(const Frame& frame, uint64_t arena_bytes);

struct AnswerView {
  std::vector<WireResult> results;
  std::string_view message;  // of the frame's memory
};
// Errors: invalid_data: fewer bytes than results.
Result<AnswerView> read_answer(const Frame& frame);

// The frame that a packet is. Errors: invalid_data: too short, another magic or version, wrong size or checksum.
Result<Frame> read_frame(std::string_view packet);

}  // namespace ragfs::engine
