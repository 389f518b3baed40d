#include "ragfs/base/bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace ragfs {
namespace {

TEST(Bytes, SlicesShareMemory) {
  const Bytes whole = Bytes::copy("hello world");
  const Bytes part = whole.slice(6);
  EXPECT_EQ(part.view(), "world");
  EXPECT_EQ(part.data(), whole.data() + 6);
  EXPECT_TRUE(whole.slice(11).empty());
  EXPECT_TRUE(whole.slice(100).empty());
  EXPECT_EQ(whole.slice(0, 5).view(), "hello");
}

TEST(Bytes, OutlivesWhatItCameFrom) {
  Bytes kept;
  {
    Bytes whole = Bytes::from_string(std::string(10'000, 'x'));
    kept = whole.slice(9'999);
  }
  EXPECT_EQ(kept.view(), "x");
}

TEST(Bytes, BufferBecomesBytesWithoutCopy) {
  ByteBuffer buffer(16);
  std::memcpy(buffer.data(), "abc", 3);
  const char* where = buffer.data();
  const Bytes bytes = std::move(buffer).take(3);
  EXPECT_EQ(bytes.data(), where);
  EXPECT_EQ(bytes.view(), "abc");
  ASSERT_NE(bytes.note(), nullptr);
  EXPECT_EQ(bytes.note()->load(), 0U);
}

TEST(Bytes, CountsReferencesAcrossThreads) {
  const Bytes shared = Bytes::copy("shared");
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([shared] {
      for (int i = 0; i < 10'000; ++i) {
        Bytes copy = shared;
        ASSERT_EQ(copy.view(), "shared");
      }
    });
  }
}

}  // namespace
}  // namespace ragfs
