#include "ragfs/engine/wire.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ragfs::engine {
namespace {

std::string a_request() {
  FrameHeader header;
  header.op = static_cast<uint16_t>(Op::put);
  header.id = 7;
  header.timeout_ms = 50;
  const std::vector<WireItem> items{{.offset = 4096, .size = 10, .key_size = 3}, {.capacity = 100, .key_size = 2}};
  const std::vector<std::string_view> keys{"abc", "de"};
  header.count = 2;
  return make_frame(header, request_body(items, keys));
}

// What Python's zlib.crc32 gives for the same bytes: hosts in other languages make frames too.
TEST(EngineWire, TheChecksumIsZlibsCrc32) {
  FrameHeader header;
  header.op = static_cast<uint16_t>(Op::ping);
  header.id = 7;
  header.timeout_ms = 50;
  EXPECT_EQ(read_frame(make_frame(header, "abc"))->header.checksum, 0xF33DD5BAU);
}

TEST(EngineWire, ARequestComesBack) {
  const std::string packet = a_request();
  const auto frame = read_frame(packet);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->op(), Op::put);
  EXPECT_FALSE(frame->is_answer());
  const auto request = read_request(*frame, 8192);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->keys, (std::vector<std::string_view>{"abc", "de"}));
  EXPECT_EQ(request->items[0].offset, 4096U);
  EXPECT_EQ(request->items[1].capacity, 100U);
  EXPECT_FALSE(read_request(*frame, 4100)) << "memory outside the arena";
}

TEST(EngineWire, AnAnswerComesBack) {
  FrameHeader header;
  header.op = static_cast<uint16_t>(Op::get) | kAnswerBit;
  header.count = 1;
  const std::vector<WireResult> results{{.status = 3, .size = 9, .engine_code = -706}};
  const std::string packet = make_frame(header, answer_body(results, "why"));
  const auto answer = read_answer(*read_frame(packet));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->results[0].engine_code, -706);
  EXPECT_EQ(answer->message, "why");
}

TEST(EngineWire, NoBitCanChangeUnseen) {
  const std::string packet = a_request();
  for (size_t bit = 0; bit < packet.size() * 8; ++bit) {
    std::string changed = packet;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(read_frame(changed)) << bit;
  }
  for (size_t size = 0; size < packet.size(); ++size) EXPECT_FALSE(read_frame(packet.substr(0, size))) << size;
  EXPECT_FALSE(read_frame(packet + "x"));
}

TEST(EngineWire, SizesThatDoNotAddUpAreRefused) {
  FrameHeader header;
  header.op = static_cast<uint16_t>(Op::get);
  header.count = 1;
  const auto refused = [&](const WireItem& item, std::string_view key) {
    const std::string packet = make_frame(header, request_body(std::vector{item}, std::vector{key}));
    return !read_request(*read_frame(packet), 8192);
  };
  EXPECT_FALSE(refused({.key_size = 1}, "k"));
  EXPECT_TRUE(refused({.key_size = 2}, "k"));
  EXPECT_TRUE(refused({.key_size = 0}, ""));
  EXPECT_TRUE(refused({.key_size = 1}, "kk"));
  EXPECT_TRUE(refused({.offset = ~uint64_t{0}, .capacity = 2, .key_size = 1}, "k"));
}

}  // namespace
}  // namespace ragfs::engine
