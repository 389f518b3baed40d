#include "ragfs/providers/redis/resp_parser.h"

#include <gtest/gtest.h>

#include <string>

#include "ragfs/providers/redis/key_slot.h"
#include "ragfs/providers/redis/redis_config.h"
#include "ragfs/providers/redis/reply_error.h"
#include "ragfs/providers/redis/server_identity.h"
#include "ragfs/providers/redis/testing_resp.h"

namespace ragfs::redis {
namespace {

std::string shown(const RespValue& value) {
  switch (value.type) {
    case RespType::status: return "+" + value.text.str();
    case RespType::error: return "-" + value.text.str();
    case RespType::integer: return std::to_string(value.integer);
    case RespType::text: return "'" + value.text.str() + "'";
    case RespType::null: return "null";
    case RespType::array:
    case RespType::push: break;
  }
  std::string out = value.type == RespType::push ? ">[" : "[";
  for (const RespValue& at : value.items) out += shown(at) + " ";
  return out + "]";
}

// The replies in `bytes`, fed in pieces, as text.
std::string parse(std::string_view bytes, size_t piece, RespLimits limits = {}) {
  RespParser parser(limits);
  std::string out;
  const bool good = feed_in_pieces(parser, bytes, piece, [&](const RespValue& at) { out += shown(at) + ";"; });
  return good ? out : out + "broken";
}

TEST(RespParser, GivesEveryTypeOfBothVersionsInPiecesOfAnySize) {
  const std::string bytes =
      "+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n*1\r\n$1\r\nx\r\n_\r\n"
      "#t\r\n,1.5\r\n(123\r\n=7\r\ntxt:abc\r\n!4\r\nERR!\r\n%1\r\n+k\r\n:2\r\n~1\r\n:3\r\n>1\r\n+p\r\n"
      "|1\r\n+a\r\n:1\r\n:9\r\n*2\r\n|1\r\n+a\r\n:1\r\n:4\r\n:5\r\n";
  const std::string expected =
      "+OK;-ERR no;-7;'a\r\n';'';null;null;[];[1 ['x' ] null ];1;'1.5';'123';'abc';-ERR!;[+k 2 ];[3 ];>[+p ];9;"
      "[4 5 ];";
  // "a\r\n" is three bytes long: a string may hold line ends.
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1'000}}) {
    EXPECT_EQ(parse(bytes, piece), expected) << piece;
  }
}

TEST(RespParser, LargeStringsArriveWhole) {
  for (const size_t size : {size_t{12 << 10}, size_t{40'000}, size_t{1} << 20}) {
    std::string body(size, 'v');
    for (size_t i = 0; i < size; i += 101) body[i] = static_cast<char>(i);
    const std::string bytes = "*2\r\n$" + std::to_string(size) + "\r\n" + body + "\r\n:1\r\n+OK\r\n";
    for (const size_t piece : {size_t{1'001}, size_t{16'384}, size_t{10} << 20}) {
      EXPECT_TRUE(parse(bytes, piece) == "['" + body + "' 1 ];+OK;") << size << " in " << piece;
    }
  }
}

TEST(RespParser, WhatIsNoRespIsRefusedForGood) {
  for (const char* bytes : {"hello\r\n", "+OK\n", ":x\r\n", "$-2\r\n", "$3\r\nabcd\r\n", "#x\r\n", "*-2\r\n",
                            "=2\r\nab\r\n", "$99999999999999999999\r\n", "HTTP/1.1 400 Bad Request\r\n"}) {
    EXPECT_EQ(parse(bytes, 100), "broken") << bytes;
    EXPECT_EQ(parse(bytes, 1), "broken") << bytes;
  }
}

TEST(RespParser, BoundsHold) {
  RespLimits limits;
  limits.max_line_bytes = 64;
  limits.max_bulk_bytes = 100;
  limits.max_reply_bytes = 150;
  limits.max_elements = 10;
  limits.max_depth = 3;
  EXPECT_EQ(parse("+" + std::string(100, 'x') + "\r\n", 7, limits), "broken");
  EXPECT_EQ(parse("$101\r\n", 7, limits), "broken");
  EXPECT_EQ(parse("*11\r\n", 7, limits), "broken");
  EXPECT_EQ(parse("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 7, limits), "broken");
  const std::string hundred = "$100\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_EQ(parse("*2\r\n" + hundred + hundred, 7, limits), "broken");
  EXPECT_EQ(parse(hundred + hundred, 1'000, limits).size(), 2 * 103u);
}

TEST(ReplyError, TellsKindsApart) {
  EXPECT_EQ(classify("LOADING Redis is loading the dataset in memory"), ReplyError::loading);
  EXPECT_EQ(classify("MASTERDOWN Link with MASTER is down"), ReplyError::master_down);
  EXPECT_EQ(classify("NOAUTH Authentication required."), ReplyError::no_auth);
  EXPECT_EQ(classify("WRONGPASS invalid username-password pair"), ReplyError::wrong_pass);
  EXPECT_EQ(classify("OOM command not allowed"), ReplyError::oom);
  EXPECT_EQ(classify("ERR something"), ReplyError::other);
  EXPECT_EQ(error_of_reply("OOM command not allowed", "h:1").code, ErrorCode::full);
  const auto moved = parse_redirect("MOVED 3999 ::1:6381");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->host, "::1");
  EXPECT_EQ(moved->port, 6381);
  EXPECT_EQ(parse_redirect("ASK 1 :6381")->host, "");
  EXPECT_FALSE(parse_redirect("MOVED x"));
  EXPECT_FALSE(parse_redirect("ERR 1 h:1"));
}

TEST(KeySlot, IsWhatRedisComputes) {
  EXPECT_EQ(crc16("123456789"), 0x31C3);
  EXPECT_EQ(key_slot("foo"), 12182);
  EXPECT_EQ(key_slot("{user1000}.following"), key_slot("user1000"));
  EXPECT_EQ(key_slot("foo{}{bar}"), crc16("foo{}{bar}") % kSlots);
  EXPECT_EQ(key_slot("foo{{bar}}zap"), crc16("{bar") % kSlots);
}

TEST(RedisEndpoint, ReadsAddressesAndRefusesTheRest) {
  EXPECT_EQ(Endpoint::parse("redis://h")->text(), "h:6379");
  EXPECT_TRUE(Endpoint::parse("rediss://h:1")->tls);
  EXPECT_EQ(Endpoint::parse("redis://[::1]:7")->text(), "[::1]:7");
  EXPECT_EQ(Endpoint::parse("unix:///run/r")->path, "/run/r");
  for (const char* bad : {"h:1", "redis://", "redis://h:0", "redis://h:99999", "redis://u:p@h", "redis://h/1",
                          "unix://r", "redis://[::1", "http://h"}) {
    EXPECT_FALSE(Endpoint::parse(bad)) << bad;
  }
}

TEST(ServerIdentity, ReadsInfo) {
  EXPECT_EQ(info_field("# Server\r\nrun_id:abc\r\nrun:x\r\n", "run_id"), "abc");
  EXPECT_EQ(info_field("a:1\r\n", "b"), "");
  EXPECT_FALSE(identity_in({}).known);
}

}  // namespace
}  // namespace ragfs::redis
