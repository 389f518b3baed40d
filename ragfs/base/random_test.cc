#include "ragfs/base/random.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace ragfs {
namespace {

TEST(Random, NumbersDifferAndUseAllBits) {
  std::set<uint64_t> seen;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t value = random_u64();
    seen.insert(value);
    ones |= value;
    zeros |= ~value;
  }
  EXPECT_EQ(seen.size(), 1'000U);
  EXPECT_EQ(ones & zeros, UINT64_MAX);
}

TEST(Random, UuidsAreOfVersion4) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  for (int i = 0; i < 1'000; ++i) {
    const std::string uuid = random_uuid();
    ASSERT_TRUE(std::regex_match(uuid, form)) << uuid;
    seen.insert(uuid);
  }
  EXPECT_EQ(seen.size(), 1'000U);
}

}  // namespace
}  // namespace ragfs
