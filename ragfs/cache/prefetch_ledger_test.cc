#include "ragfs/cache/prefetch_ledger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ragfs/base/hash.h"

namespace ragfs {
namespace {

using Taken = PrefetchLedger::Taken;

TEST(PrefetchLedgerTest, AnEntryIsTakenOnce) {
  PrefetchLedger ledger;
  EXPECT_EQ(ledger.take(mix64(1)), Taken::no);
  EXPECT_EQ(ledger.add(mix64(1), false, 0), 0U);
  EXPECT_EQ(ledger.add(mix64(2), true, 0), 0U);
  EXPECT_EQ(ledger.size(), 2U);
  EXPECT_EQ(ledger.take(mix64(3)), Taken::no);
  EXPECT_EQ(ledger.take(mix64(1)), Taken::plain);
  EXPECT_EQ(ledger.take(mix64(2)), Taken::marked);
  EXPECT_EQ(ledger.take(mix64(1)), Taken::no);
  EXPECT_EQ(ledger.size(), 0U);
}

TEST(PrefetchLedgerTest, WhatIsReadAheadAgainWentUnreadBefore) {
  PrefetchLedger ledger;
  EXPECT_EQ(ledger.add(mix64(1), false, 0), 0U);
  EXPECT_EQ(ledger.add(mix64(1), false, 1), 1U);
  EXPECT_EQ(ledger.size(), 1U);
}

TEST(PrefetchLedgerTest, OldEntriesAreForgottenAndCounted) {
  PrefetchLedger ledger;
  for (uint64_t i = 1; i < 100; ++i) (void)ledger.add(mix64(i), false, static_cast<int64_t>(i));
  const size_t all = ledger.size();
  EXPECT_EQ(ledger.forget_before(0), 0U);
  EXPECT_EQ(ledger.forget_before(50) + ledger.size(), all);
  EXPECT_EQ(ledger.take(mix64(49)), Taken::no);
  EXPECT_EQ(ledger.take(mix64(50)), Taken::plain);
}

TEST(PrefetchLedgerTest, ItIsBoundedAndEveryEntryLeavesOnce) {
  PrefetchLedger ledger;
  constexpr uint64_t kMany = 200'000;
  uint64_t pushed_out = 0;
  for (uint64_t i = 1; i <= kMany; ++i) pushed_out += ledger.add(mix64(i), false, static_cast<int64_t>(i));
  EXPECT_LE(ledger.size(), 65'536U);
  EXPECT_EQ(pushed_out + ledger.size(), kMany);
  uint64_t taken = 0;
  for (uint64_t i = 1; i <= kMany; ++i) taken += ledger.take(mix64(i)) == Taken::no ? 0 : 1;
  EXPECT_EQ(pushed_out + taken, kMany);
}

TEST(PrefetchLedgerTest, OfManyReadersOneTakes) {
  PrefetchLedger ledger;
  constexpr uint64_t kEntries = 2'000;
  for (uint64_t i = 1; i <= kEntries; ++i) (void)ledger.add(mix64(i), false, 0);
  const size_t there = ledger.size();
  std::atomic<uint64_t> taken{0};
  std::vector<std::jthread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      for (uint64_t i = 1; i <= kEntries; ++i) taken += ledger.take(mix64(i)) == Taken::no ? 0 : 1;
    });
  }
  readers.clear();
  EXPECT_EQ(taken.load(), there);
  EXPECT_EQ(ledger.size(), 0U);
}

}  // namespace
}  // namespace ragfs
