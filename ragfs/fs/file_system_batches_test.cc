// Calls for many paths through the wrappers: each hands the whole batch on.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ragfs/fs/agfs_view.h"
#include "ragfs/fs/exception_barrier.h"
#include "ragfs/fs/mount_table.h"
#include "ragfs/fs/path_lock_file_system.h"
#include "ragfs/fs/stats_file_system.h"
#include "ragfs/fs/testing_file_system.h"

namespace ragfs {
namespace {

// Counts the batches that reach it.
class CountingFileSystem final : public TestingFileSystem {
 public:
  using TestingFileSystem::TestingFileSystem;
  std::vector<Result<Bytes>> read_many(const Context& ctx, std::span<const PathView> paths) override {
    ++batches;
    return FileSystem::read_many(ctx, paths);
  }
  std::vector<Result<FileInfo>> stat_many(const Context& ctx, std::span<const PathView> paths) override {
    ++batches;
    return FileSystem::stat_many(ctx, paths);
  }
  std::vector<Result<std::vector<FileInfo>>> read_dir_many(const Context& ctx,
                                                           std::span<const PathView> paths) override {
    ++batches;
    return FileSystem::read_dir_many(ctx, paths);
  }
  std::vector<Result<WriteResult>> write_many(const Context& ctx, std::span<const WriteItem> items) override {
    ++batches;
    return FileSystem::write_many(ctx, items);
  }
  int batches = 0;
};

class Wrappers : public ::testing::Test {
 protected:
  void SetUp() override {
    first->put("/x", "1x");
    first->put("/y", "1y");
    first->put("/sub/z", "1z");
    second->put("/x", "2x");
    const auto wrapped = [](std::shared_ptr<FileSystem> backend) {
      return std::make_shared<StatsFileSystem>(std::make_shared<ExceptionBarrier>(std::move(backend)));
    };
    ASSERT_TRUE(table->mount(PathView::from_normal("/a"), wrapped(first)));
    ASSERT_TRUE(table->mount(PathView::from_normal("/b"), wrapped(second)));
    locks = std::make_shared<PathLocks>();
    stats = std::make_shared<StatsFileSystem>(std::make_shared<PathLockFileSystem>(table, locks));
    top = std::make_shared<AgfsView>(stats, table);
  }
  template <typename T>
  static std::string kind_of(const Result<T>& result) {
    return result ? "ok" : std::string(kind_name(result.error().code));
  }

  Context ctx;
  std::shared_ptr<CountingFileSystem> first = std::make_shared<CountingFileSystem>("first");
  std::shared_ptr<CountingFileSystem> second = std::make_shared<CountingFileSystem>("second");
  std::shared_ptr<MountTable> table = std::make_shared<MountTable>();
  std::shared_ptr<PathLocks> locks;
  std::shared_ptr<StatsFileSystem> stats;
  std::shared_ptr<FileSystem> top;
};

TEST_F(Wrappers, AReadOfManyReachesEachMountOnce) {
  const std::vector<PathView> paths = {PathView::from_normal("/a/x"), PathView::from_normal("/b/x"),
                                       PathView::from_normal("/c/x"), PathView::from_normal("/a/none"),
                                       PathView::from_normal("/a/y")};
  const auto answers = top->read_many(ctx, paths);
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(answers[0]->str(), "1x");
  EXPECT_EQ(answers[1]->str(), "2x");
  EXPECT_EQ(kind_of(answers[2]), "mount_point_not_found");
  EXPECT_EQ(kind_of(answers[3]), "not_found");
  EXPECT_EQ(answers[4]->str(), "1y");
  EXPECT_EQ(first->batches, 1);
  EXPECT_EQ(second->batches, 1);
  EXPECT_EQ(stats->stats().snapshot(Operation::read).count, 5U);
  EXPECT_EQ(stats->stats().snapshot(Operation::read).errors, 2U);
}

TEST_F(Wrappers, AStatOfManyShowsWhatTheViewShows) {
  const std::vector<std::string> texts = {"/", "/a", "/a/x", "/a/none", "/b", "/c", "/c/x"};
  std::vector<PathView> paths;
  for (const std::string& text : texts) paths.push_back(PathView::from_normal(text));
  const auto answers = top->stat_many(ctx, paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    const auto single = top->stat(ctx, paths[i]);
    EXPECT_EQ(kind_of(answers[i]), kind_of(single));
    if (single && answers[i]) {
      EXPECT_EQ(*answers[i], *single);
    }
  }
  EXPECT_EQ(first->batches, 1);
  const auto there = top->exists_many(ctx, paths);
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(*there[i], *top->exists(ctx, paths[i])) << texts[i];
}

TEST_F(Wrappers, ListingsOfManyShowWhatTheViewShows) {
  const std::vector<std::string> texts = {"/", "/a", "/a/sub", "/a/x", "/b", "/c"};
  std::vector<PathView> paths;
  for (const std::string& text : texts) paths.push_back(PathView::from_normal(text));
  const auto answers = top->read_dir_many(ctx, paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    const auto single = top->read_dir(ctx, paths[i]);
    EXPECT_EQ(kind_of(answers[i]), kind_of(single));
    if (single && answers[i]) {
      EXPECT_EQ(*answers[i], *single);
    }
  }
}

TEST_F(Wrappers, AWriteOfManyTakesItsLocksAtOnce) {
  const std::vector<WriteItem> items = {{PathView::from_normal("/a/x"), "new"}, {PathView::from_normal("/b/z"), "2z"}};
  for (const auto& written : top->write_many(ctx, items)) EXPECT_EQ(kind_of(written), "ok");
  EXPECT_EQ(top->read(ctx, PathView::from_normal("/a/x"), 0, 0)->str(), "new");
  EXPECT_EQ(top->read(ctx, PathView::from_normal("/b/z"), 0, 0)->str(), "2z");
  EXPECT_EQ(first->batches, 1);

  const std::vector<PathLockRequest> one = {{PathView::from_normal("/b/z"), PathLockKind::exact}};
  const auto held = locks->hold(one, 0);
  ASSERT_TRUE(held);
  for (const auto& refused : top->write_many(ctx, items)) EXPECT_EQ(kind_of(refused), "lock_conflict");
  EXPECT_EQ(first->batches, 1) << "nothing was written";
}

TEST_F(Wrappers, OnePathIsNotWrittenTwiceInOneCall) {
  const std::vector<WriteItem> items = {{PathView::from_normal("/a/x"), "one"}, {PathView::from_normal("/a/x"), "two"}};
  for (const auto& refused : top->write_many(ctx, items)) EXPECT_EQ(kind_of(refused), "invalid_operation");
  EXPECT_EQ(top->read(ctx, PathView::from_normal("/a/x"), 0, 0)->str(), "1x");
}

}  // namespace
}  // namespace ragfs
