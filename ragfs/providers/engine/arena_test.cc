#include "ragfs/providers/engine/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ragfs::engine {
namespace {

using Blocks = std::vector<Arena::Block>;

TEST(EngineArena, BlocksDoNotOverlapAndAllComesBack) {
  const auto arena = Arena::create(1 << 20).value();
  std::minstd_rand random(1);
  std::map<uint64_t, Blocks> held;  // by the first offset
  std::vector<bool> used((1 << 20) / Arena::kLeastBlock);
  for (int round = 0; round < 5'000; ++round) {
    if (random() % 2 == 0 && !held.empty()) {
      const auto one = held.begin();
      for (const auto& block : one->second) {
        for (uint64_t at = 0; at < block.size; at += Arena::kLeastBlock) {
          used[(block.offset + at) / Arena::kLeastBlock] = false;
        }
      }
      arena->give_back(one->second);
      held.erase(one);
      continue;
    }
    const auto taken = arena->take({random() % 70'000 + 1, random() % 9'000}, Deadline::in_ms(0));
    if (!taken) continue;
    for (const auto& block : *taken) {
      EXPECT_EQ(block.offset % block.size, 0U);
      for (uint64_t at = 0; at < block.size; at += Arena::kLeastBlock) {
        ASSERT_FALSE(used[(block.offset + at) / Arena::kLeastBlock]) << "two blocks share memory";
        used[(block.offset + at) / Arena::kLeastBlock] = true;
      }
    }
    held[taken->front().offset] = *taken;
  }
  for (const auto& [offset, blocks] : held) arena->give_back(blocks);
  EXPECT_EQ(arena->used_bytes(), 0U);
  EXPECT_TRUE(arena->take({1 << 20}, Deadline::in_ms(0))) << "neighbours became one again";
}

TEST(EngineArena, ABatchGetsAllItsBlocksOrNone) {
  const auto arena = Arena::create(1 << 16).value();
  EXPECT_FALSE(arena->take({1 << 15, 1 << 15, 1}, Deadline::in_ms(1)));
  EXPECT_EQ(arena->used_bytes(), 0U);
  EXPECT_TRUE(arena->take({1 << 15, 1 << 15}, Deadline::in_ms(0)));
}

TEST(EngineArena, WhatIsLargerThanAllNeverFits) {
  const auto arena = Arena::create(1 << 16).value();
  EXPECT_FALSE(arena->take({(1 << 16) + 1}, Deadline::in_ms(0)));
}

}  // namespace
}  // namespace ragfs::engine
