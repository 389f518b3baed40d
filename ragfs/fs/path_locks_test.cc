#include "ragfs/fs/path_locks.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace ragfs {
namespace {

PathLockRequest exact(std::string_view path) { return {PathView::from_normal(path), PathLockKind::exact}; }
PathLockRequest subtree(std::string_view path) { return {PathView::from_normal(path), PathLockKind::subtree}; }

std::string take(PathLocks& locks, PathLockRequest request, std::string_view owner = {}) {
  auto lease = locks.acquire({&request, 1}, 0, owner);
  return lease ? *lease : "ERROR " + lease.error().text();
}

TEST(PathLocks, ALeaseExcludesOthersUntilItIsReleased) {
  PathLocks locks;
  const std::string lease = take(locks, exact("/a/f"));
  EXPECT_EQ(take(locks, exact("/a/f")), "ERROR lock conflict: lock acquire timed out after 0ms");
  EXPECT_EQ(take(locks, subtree("/a")), "ERROR lock conflict: lock acquire timed out after 0ms");
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a/f")));
  EXPECT_FALSE(locks.is_locked(PathView::from_normal("/a/g")));
  ASSERT_TRUE(locks.release(lease));
  EXPECT_FALSE(locks.is_locked(PathView::from_normal("/a/f")));
  EXPECT_FALSE(locks.release(lease));
  EXPECT_EQ(locks.counts().conflicts_total, 2U);
}

TEST(PathLocks, AWaiterGetsTheLockWhenItIsReleased) {
  PathLocks locks;
  const std::string lease = take(locks, subtree("/a"));
  std::jthread releaser([&] {
    while (locks.counts().table.waiting == 0) std::this_thread::yield();
    ASSERT_TRUE(locks.release(lease));
  });
  const PathLockRequest request = exact("/a/b/c");
  EXPECT_TRUE(locks.acquire({&request, 1}, 20'000));
}

TEST(PathLocks, CoverIsCheckedRequestByRequest) {
  PathLocks locks;
  const std::string lease = take(locks, subtree("/a"));
  const std::array inside{exact("/a/x"), subtree("/a/y")};
  EXPECT_TRUE(locks.check_covers(lease, inside));
  const std::array outside{exact("/ab")};
  EXPECT_EQ(locks.check_covers(lease, outside).error().text(),
            "internal error: lock lease error: lease does not cover /ab (exact)");
  EXPECT_FALSE(locks.check_covers("nobody", inside));
}

TEST(PathLocks, WhatALeaseCoversIsNotLockedAgainForItsOwner) {
  PathLocks locks;
  const std::string outer = take(locks, subtree("/a"));
  const std::string inner = take(locks, exact("/a/f"), outer);
  EXPECT_FALSE(inner.starts_with("ERROR")) << inner;
  ASSERT_TRUE(locks.release(inner));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a/f")));
}

TEST(PathLocks, AnExactLockBecomesASubtreeLockForItsOwner) {
  PathLocks locks;
  const std::string file = take(locks, exact("/a"));
  EXPECT_TRUE(take(locks, subtree("/a")).starts_with("ERROR lock conflict")) << "for a stranger it is in the way";
  const std::string tree = take(locks, subtree("/a"), file);
  ASSERT_FALSE(tree.starts_with("ERROR")) << tree;
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a/below")));
  EXPECT_FALSE(take(locks, exact("/a/below"), tree).starts_with("ERROR")) << "and what it covers is entered again";
  ASSERT_TRUE(locks.release(file));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a"))) << "the wider lock stands alone";
}

TEST(PathLocks, AStrangersLockBelowKeepsAnExactLockFromBecomingASubtreeLock) {
  PathLocks locks;
  const std::string mine = take(locks, exact("/a"));
  const std::string other = take(locks, exact("/a/b/c"));
  EXPECT_TRUE(take(locks, subtree("/a"), mine).starts_with("ERROR lock conflict"));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a"))) << "and what was held is held";
  ASSERT_TRUE(locks.release(other));
  EXPECT_FALSE(take(locks, subtree("/a"), mine).starts_with("ERROR"));
}

TEST(PathLocks, ALockThatANestedLeaseReliesOnOutlivesTheOuterOne) {
  PathLocks locks;
  const std::string outer = take(locks, subtree("/a"));
  const std::string inner = take(locks, exact("/a/f"), outer);
  ASSERT_TRUE(locks.release(outer));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a/f")));
  ASSERT_TRUE(locks.release(inner));
  EXPECT_FALSE(locks.is_locked(PathView::from_normal("/a/f")));
  EXPECT_FALSE(locks.is_locked(PathView::from_normal("/a/g")));
  EXPECT_EQ(locks.counts().table.held, 0U);
}

// OpenViking: a nested lock that failed let the caller's outer lock go.
TEST(CaseA19, AFailedNestedLockLeavesTheOuterOneHeld) {
  PathLocks locks;
  const std::string outer = take(locks, subtree("/a"));
  const std::string other = take(locks, exact("/b/f"));
  const std::array both{exact("/a/f"), exact("/b/f")};
  EXPECT_FALSE(locks.acquire(both, 0, outer));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/a/x")));
  EXPECT_TRUE(locks.check_covers(outer, {both.data(), 1}));
}

TEST(PathLocks, ALeaseThatNobodyRefreshesIsTakenBack) {
  ManualClock clock;
  PathLocksConfig config;
  config.expire_ms = 1'000;
  PathLocks locks(config, clock);
  const std::string kept = take(locks, exact("/kept"));
  const std::string lost = take(locks, exact("/lost"));
  clock.advance_ms(1'500);
  EXPECT_TRUE(locks.refresh(kept));
  clock.advance_ms(1'000);
  EXPECT_TRUE(locks.refresh(kept));
  EXPECT_FALSE(locks.refresh(lost));
  EXPECT_FALSE(locks.is_locked(PathView::from_normal("/lost")));
  EXPECT_TRUE(locks.is_locked(PathView::from_normal("/kept")));
  EXPECT_EQ(locks.counts().expired_total, 1U);
}

TEST(PathLocks, LeasesAreBounded) {
  PathLocksConfig config;
  config.max_leases = 2;
  PathLocks locks(config);
  (void)take(locks, exact("/1"));
  (void)take(locks, exact("/2"));
  EXPECT_EQ(take(locks, exact("/3")), "ERROR operation would block: too many path-lock leases");
}

TEST(PathLocks, ConfigNamesFieldValueAndWhatIsAllowed) {
  PathLocksConfig config;
  config.expire_ms = 999;
  EXPECT_EQ(config.validate().error().message,
            "pathlock.lock_expire_secs: 999 ms is not allowed; it must be at least 1 second");
}

}  // namespace
}  // namespace ragfs
