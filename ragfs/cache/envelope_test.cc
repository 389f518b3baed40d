#include "ragfs/cache/envelope.h"

#include <gtest/gtest.h>

#include <string>

namespace ragfs {
namespace {

EnvelopeInfo sample_info() {
  return {.kind = ObjectKind::file,
          .identity_hash = 0x0102030405060708,
          .epoch = 0x1112131415161718,
          .stamp = 42,
          .filled_at_ns = 1'700'000'000'000'000'001,
          .expires_at_ns = 1'700'000'060'000'000'001,
          .scope_generation = 7,
          .size = 5,
          .mtime_ns = -1,
          .mode = 0640,
          .path = "/acct/resources/r/f.md",
          .version = "12-5-34"};
}

std::string sealed(const EnvelopeInfo& info, std::string_view payload) {
  return encode_envelope(info, payload) + std::string(payload);
}

TEST(Envelope, ComesBackAsItWent) {
  const EnvelopeInfo info = sample_info();
  const std::string object = sealed(info, "hello");
  EXPECT_EQ(object.size(), envelope_overhead_bytes(info) + 5);
  for (const bool verify : {false, true}) {
    const auto decoded = decode_envelope(object, verify);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->payload, "hello");
    EXPECT_EQ(decoded->payload.data(), object.data() + object.size() - 5) << "nothing is copied";
    EXPECT_EQ(decoded->info.kind, info.kind);
    EXPECT_EQ(decoded->info.identity_hash, info.identity_hash);
    EXPECT_EQ(decoded->info.epoch, info.epoch);
    EXPECT_EQ(decoded->info.stamp, info.stamp);
    EXPECT_EQ(decoded->info.filled_at_ns, info.filled_at_ns);
    EXPECT_EQ(decoded->info.expires_at_ns, info.expires_at_ns);
    EXPECT_EQ(decoded->info.scope_generation, info.scope_generation);
    EXPECT_EQ(decoded->info.size, info.size);
    EXPECT_EQ(decoded->info.mtime_ns, info.mtime_ns);
    EXPECT_EQ(decoded->info.mode, info.mode);
    EXPECT_EQ(decoded->info.path, info.path);
    EXPECT_EQ(decoded->info.version, info.version);
  }
}

TEST(Envelope, EmptyAndLongestFieldsFit) {
  EnvelopeInfo info = sample_info();
  info.version = {};
  info.path = "/";
  ASSERT_TRUE(decode_envelope(sealed(info, ""), true));
  EXPECT_EQ(decode_envelope(sealed(info, ""), true)->payload, "");
  std::string path;
  while (path.size() + 256 <= 4'095) path += "/" + std::string(255, 'p');
  const std::string version(65'535, 'v');
  info.path = path;
  info.version = version;
  const std::string payload(3'000'000, '\xff');
  const std::string object = sealed(info, payload);
  const auto decoded = decode_envelope(object, true);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->info.path, path);
  EXPECT_EQ(decoded->info.version, version);
  EXPECT_EQ(decoded->payload, payload);
}

// Wherever a bit flips, in header, path, version or payload, verification sees it.
TEST(Envelope, EveryFlippedByteIsSeen) {
  const std::string object = sealed(sample_info(), "payload of a file");
  for (size_t at = 0; at < object.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = object;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      EXPECT_FALSE(decode_envelope(damaged, true)) << "byte " << at;
      (void)decode_envelope(damaged, false);  // may pass, must not read outside (the sanitizers look)
    }
  }
}

TEST(Envelope, EveryTruncationAndAppendixIsSeenWithoutVerification) {
  const std::string object = sealed(sample_info(), "payload");
  for (size_t size = 0; size < object.size(); ++size) {
    EXPECT_FALSE(decode_envelope(std::string_view(object).substr(0, size), false)) << size;
  }
  EXPECT_FALSE(decode_envelope(object + "x", false));
}

TEST(Envelope, ForeignBytesAreNoEnvelope) {
  EXPECT_FALSE(decode_envelope("", false));
  EXPECT_FALSE(decode_envelope(std::string(4'096, '\0'), false));
  EXPECT_FALSE(decode_envelope(std::string(4'096, '\xff'), false));
  std::string other_version = sealed(sample_info(), "x");
  other_version[4] = 2;
  EXPECT_FALSE(decode_envelope(other_version, false));
  for (const char kind : {'\0', '\x04', '\xff'}) {
    std::string other_kind = sealed(sample_info(), "x");
    other_kind[5] = kind;
    EXPECT_FALSE(decode_envelope(other_kind, false));
  }
}

// Half of one object and half of another, as concurrent writers of a provider without atomic puts leave it.
TEST(Envelope, ATornObjectIsSeen) {
  EnvelopeInfo newer = sample_info();
  newer.stamp = 43;
  const std::string a = sealed(sample_info(), "AAAAAAAAAAAAAAAA");
  const std::string b = sealed(newer, "BBBBBBBBBBBBBBBB");
  ASSERT_EQ(a.size(), b.size());
  for (size_t cut = 1; cut < a.size(); ++cut) {
    const std::string torn = a.substr(0, cut) + b.substr(cut);
    if (torn == a || torn == b) continue;
    EXPECT_FALSE(decode_envelope(torn, true)) << cut;
  }
}

}  // namespace
}  // namespace ragfs
