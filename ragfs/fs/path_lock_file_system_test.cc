#include "ragfs/fs/path_lock_file_system.h"

#include <gtest/gtest.h>

#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

class PathLockFileSystemTest : public ::testing::Test {
 protected:
  static PathView at(std::string_view path) { return PathView::from_normal(path); }
  std::string lease_on(std::string_view path, PathLockKind kind) {
    const PathLockRequest request{at(path), kind};
    return *locks->acquire({&request, 1}, 0);
  }
  static std::string outcome(const Result<void>& result) { return result ? "ok" : result.error().text(); }

  Context ctx;
  std::shared_ptr<TestingFileSystem> inner = std::make_shared<TestingFileSystem>();
  std::shared_ptr<PathLocks> locks = std::make_shared<PathLocks>();
  PathLockFileSystem fs{inner, locks};
};

TEST_F(PathLockFileSystemTest, MutationsMeetForeignLeasesAndReadsDoNot) {
  inner->put("/d/f", "x");
  const std::string lease = lease_on("/d", PathLockKind::subtree);
  const std::string refused = "lock conflict: lock acquire timed out after 0ms";
  EXPECT_EQ(outcome(fs.create(ctx, at("/d/new"))), refused);
  EXPECT_EQ(outcome(fs.remove(ctx, at("/d/f"))), refused);
  EXPECT_EQ(outcome(fs.truncate(ctx, at("/d/f"), 0)), refused);
  EXPECT_EQ(outcome(fs.remove_all(ctx, at("/d"))), refused);
  EXPECT_EQ(outcome(fs.rename(ctx, at("/d"), at("/e"))), refused);
  EXPECT_FALSE(fs.write(ctx, at("/d/f"), "y", 0, WriteFlag::create));
  EXPECT_TRUE(fs.read(ctx, at("/d/f"), 0, 0));
  EXPECT_TRUE(fs.read_dir(ctx, at("/d")));
  EXPECT_TRUE(fs.mkdir(ctx, at("/d/sub"), kDefaultDirMode));
  ASSERT_TRUE(locks->release(lease));
  EXPECT_EQ(outcome(fs.create(ctx, at("/d/new"))), "ok");
  EXPECT_EQ(locks->counts().table.held, 0U);
}

TEST_F(PathLockFileSystemTest, TheHolderOfALeaseWritesUnderIt) {
  inner->put("/d/f", "x");
  ctx.lease_ref = lease_on("/d", PathLockKind::subtree);
  EXPECT_TRUE(fs.write(ctx, at("/d/f"), "y", 0, WriteFlag::create));
  EXPECT_EQ(outcome(fs.create(ctx, at("/other"))),
            "internal error: lock lease error: lease does not cover /other (exact)");
  ctx.lease_ref = "forged";
  EXPECT_EQ(outcome(fs.create(ctx, at("/d/g"))), "internal error: lock lease error: unknown or expired lease 'forged'");
}

TEST_F(PathLockFileSystemTest, DisabledInternalAndSkippedPathsTakeNoLock) {
  inner->put("/queue/q/enqueue", "");
  inner->put("/d/f", "x");
  const std::string root = lease_on("/", PathLockKind::subtree);
  EXPECT_TRUE(fs.write(ctx, at("/queue/q/enqueue"), "m", 0, WriteFlag::create));
  EXPECT_TRUE(fs.write(ctx, at("/d/.path.ovlock"), "t", 0, WriteFlag::create));
  ctx.disable_auto_pathlock = true;
  EXPECT_TRUE(fs.write(ctx, at("/d/f"), "y", 0, WriteFlag::create));
}

TEST_F(PathLockFileSystemTest, ADirectoryMovesUnderItsSubtreeLockAFileUnderAnExactOne) {
  inner->put("/d/f", "x");
  inner->put("/e/g", "x");
  const std::string inside = lease_on("/d/f", PathLockKind::exact);
  EXPECT_EQ(outcome(fs.rename(ctx, at("/d"), at("/moved"))), "lock conflict: lock acquire timed out after 0ms");
  EXPECT_EQ(outcome(fs.rename(ctx, at("/e/g"), at("/e/h"))), "ok");
}

}  // namespace
}  // namespace ragfs
