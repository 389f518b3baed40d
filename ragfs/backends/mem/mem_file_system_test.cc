// What only memfs does: capacity, shared memory of contents, times from its clock.
#include "ragfs/backends/mem/mem_file_system.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ragfs {
namespace {

PathView P(std::string_view text) { return PathView::from_normal(text); }

class MemFileSystemTest : public ::testing::Test {
 protected:
  std::unique_ptr<MemFileSystem> make(uint64_t capacity_bytes, uint64_t max_entries = 100) {
    return MemFileSystem::open({.capacity_bytes = capacity_bytes, .max_entries = max_entries}, clock).value();
  }
  ErrorCode put(MemFileSystem& fs, std::string_view path, std::string_view data, WriteFlag flag = WriteFlag::create) {
    auto written = fs.write(ctx, P(path), data, 0, flag);
    return written ? ErrorCode::cancelled : written.error().code;  // cancelled: what memfs never answers
  }
  static constexpr ErrorCode kOk = ErrorCode::cancelled;
  Context ctx;
  ManualClock clock;
};

TEST_F(MemFileSystemTest, ConfigurationIsChecked) {
  EXPECT_EQ(MemFileSystem::open({.capacity_bytes = 0}).error().code, ErrorCode::config);
  EXPECT_EQ(MemFileSystem::open({.max_entries = 0}).error().code, ErrorCode::config);
}

TEST_F(MemFileSystemTest, CapacityIsRefusedBeforeAnythingChanges) {
  auto fs = make(10'000);
  ASSERT_EQ(put(*fs, "/f", std::string(5'000, 'a')), kOk);
  const uint64_t used = fs->used_bytes();
  EXPECT_EQ(put(*fs, "/g", std::string(5'000, 'b')), ErrorCode::full);
  EXPECT_EQ(put(*fs, "/g", std::string(50'000, 'b')), ErrorCode::full);
  EXPECT_EQ(put(*fs, "/f", std::string(5'000, 'b'), WriteFlag::append), ErrorCode::full);
  EXPECT_EQ(fs->truncate(ctx, P("/f"), 1ULL << 50).error().code, ErrorCode::full);
  EXPECT_EQ(fs->write(ctx, P("/f"), "x", 1ULL << 50, WriteFlag::none).error().code, ErrorCode::full);
  EXPECT_EQ(fs->copy(ctx, P("/f"), P("/g")).error().code, ErrorCode::full);
  EXPECT_EQ(fs->used_bytes(), used);
  EXPECT_FALSE(*fs->exists(ctx, P("/g"))) << "a refused write leaves no empty file";
  EXPECT_EQ(fs->read(ctx, P("/f"), 0, 0)->view(), std::string(5'000, 'a'));
  EXPECT_EQ(put(*fs, "/f", std::string(9'000, 'c')), kOk) << "a replaced content gives its room back";
}

TEST_F(MemFileSystemTest, EntriesAreBounded) {
  auto fs = make(1 << 20, 3);
  ASSERT_TRUE(fs->mkdir(ctx, P("/d"), 0755));
  ASSERT_EQ(put(*fs, "/d/a", ""), kOk);
  ASSERT_EQ(put(*fs, "/d/b", ""), kOk);
  EXPECT_EQ(put(*fs, "/c", ""), ErrorCode::full);
  EXPECT_EQ(fs->mkdir(ctx, P("/c"), 0755).error().code, ErrorCode::full);
  EXPECT_EQ(put(*fs, "/d/a", "replaced"), kOk);
  ASSERT_TRUE(fs->remove_all(ctx, P("/d")));
  EXPECT_EQ(fs->used_entries(), 0U);
  EXPECT_EQ(fs->used_bytes(), 0U);
  EXPECT_EQ(put(*fs, "/c", ""), kOk);
}

TEST_F(MemFileSystemTest, UsageReturnsToZeroAfterEveryKindOfChange) {
  auto fs = make(1 << 20);
  ASSERT_TRUE(fs->ensure_parent_dirs(ctx, P("/a/b/f"), 0755));
  ASSERT_EQ(put(*fs, "/a/b/f", "12345"), kOk);
  ASSERT_EQ(put(*fs, "/a/b/f", "678", WriteFlag::append), kOk);
  ASSERT_TRUE(fs->copy(ctx, P("/a/b/f"), P("/x/y/longer-name")));
  ASSERT_TRUE(fs->rename(ctx, P("/x/y/longer-name"), P("/a/b/f")));
  ASSERT_TRUE(fs->rename(ctx, P("/a/b"), P("/x/y")));
  ASSERT_TRUE(fs->truncate(ctx, P("/x/y/f"), 100));
  ASSERT_TRUE(fs->replace(ctx, P("/x/y/f"), P("/g")));
  ASSERT_TRUE(*fs->compare_and_write(ctx, P("/g"), fs->read(ctx, P("/g"), 0, 0)->view(), "z"));
  ASSERT_TRUE(*fs->compare_and_remove(ctx, P("/g"), "z"));
  ASSERT_TRUE(fs->remove_all(ctx, P("/")));
  EXPECT_EQ(fs->used_bytes(), 0U);
  EXPECT_EQ(fs->used_entries(), 0U);
}

TEST_F(MemFileSystemTest, ReadersNeverSeeAppendedBytes) {
  auto fs = make(1 << 20);
  ASSERT_EQ(put(*fs, "/f", "one"), kOk);
  ASSERT_EQ(put(*fs, "/f", "two", WriteFlag::append), kOk);
  const Bytes held = *fs->read(ctx, P("/f"), 0, 0);
  ASSERT_TRUE(fs->copy(ctx, P("/f"), P("/g")));
  ASSERT_EQ(put(*fs, "/f", "-first", WriteFlag::append), kOk);   // grows in place behind `held`
  ASSERT_EQ(put(*fs, "/g", "-second", WriteFlag::append), kOk);  // shares the memory: must not grow over "-first"
  EXPECT_EQ(held.view(), "onetwo");
  EXPECT_EQ(fs->read(ctx, P("/f"), 0, 0)->view(), "onetwo-first");
  EXPECT_EQ(fs->read(ctx, P("/g"), 0, 0)->view(), "onetwo-second");
}

TEST_F(MemFileSystemTest, AppendIsAmortised) {
  auto fs = make(1ULL << 30);
  ASSERT_EQ(put(*fs, "/f", std::string(1 << 20, 'a')), kOk);
  ASSERT_EQ(put(*fs, "/f", "x", WriteFlag::append), kOk);  // makes room
  const char* const memory = fs->read(ctx, P("/f"), 0, 0)->data();
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(put(*fs, "/f", "x", WriteFlag::append), kOk);
  EXPECT_EQ(fs->read(ctx, P("/f"), 0, 0)->data(), memory) << "an append moved the whole content";
}

TEST_F(MemFileSystemTest, TimesComeFromTheClock) {
  auto fs = make(1 << 20);
  clock.advance_ms(5);
  ASSERT_EQ(put(*fs, "/f", "x"), kOk);
  EXPECT_EQ(fs->stat(ctx, P("/f"))->mtime_ns, clock.wall_ns());
  EXPECT_EQ(fs->stat(ctx, P("/"))->mtime_ns, clock.wall_ns());
  const int64_t written = clock.wall_ns();
  clock.advance_ms(5);
  ASSERT_TRUE(fs->rename(ctx, P("/f"), P("/g")));
  EXPECT_EQ(fs->stat(ctx, P("/g"))->mtime_ns, written) << "a rename keeps the file's time";
  EXPECT_EQ(fs->stat(ctx, P("/"))->mtime_ns, clock.wall_ns());
}

TEST_F(MemFileSystemTest, ReadersAndWritersOfOneFileRun) {
  auto fs = make(1ULL << 30);
  ASSERT_EQ(put(*fs, "/f", "0"), kOk);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) EXPECT_TRUE(fs->write(ctx, P("/f"), "0", 0, WriteFlag::append));
    });
    threads.emplace_back([&] {
      size_t last = 0;
      for (int i = 0; i < 2'000; ++i) {
        const Bytes bytes = *fs->read(ctx, P("/f"), 0, 0);
        EXPECT_GE(bytes.size(), last);
        EXPECT_EQ(bytes.view().find_first_not_of('0'), std::string_view::npos);
        last = bytes.size();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fs->stat(ctx, P("/f"))->size, 4'001U);
}

}  // namespace
}  // namespace ragfs
