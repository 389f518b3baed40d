#include "ragfs/base/hash.h"

#include <gtest/gtest.h>

namespace ragfs {
namespace {

// Published values of XXH3: a library that computed others would make every stored key and checksum foreign.
TEST(Hash, KnownAnswers) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2ULL);
  EXPECT_EQ(hash128(""), (Hash128{0x99aa06d3014798d8ULL, 0x6001c324468d497fULL}));
}

TEST(Hash, SeedAndEveryByteCount) {
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
  std::string text(100, 'x');
  const uint64_t before = hash64(text);
  for (char& byte : text) {
    byte = 'y';
    EXPECT_NE(hash64(text), before);
    byte = 'x';
  }
  EXPECT_NE(mix64(1), mix64(2));
}

}  // namespace
}  // namespace ragfs
