#include "python/lock_files.h"

#include <gtest/gtest.h>

#include "python/lock_book.h"
#include "ragfs/backends/mem/mem_file_system.h"
#include "ragfs/base/clock.h"
#include "ragfs/fs/stats_file_system.h"
#include "ragfs/fs/testing_file_system.h"

namespace ragfs::python {
namespace {

constexpr int64_t kExpire_ms = 30'000;
constexpr int64_t kNsPerMs = 1'000'000;

// One tree that two processes work on.
class LockFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MemFileSystem::open(MemConfig());
    ASSERT_TRUE(made.has_value());
    mem_ = std::shared_ptr<FileSystem>(std::move(*made));
    for (const auto& table : {one_, two_}) {
      ASSERT_TRUE(table->mount(path("/local"), std::make_shared<StatsFileSystem>(mem_)).has_value());
    }
    ASSERT_TRUE(one_->mkdir(Context(), path("/local/d"), kDefaultDirMode).has_value());
  }

  static Path path(std::string_view text) { return *Path::parse(text); }
  static LockRequest request(std::string text, bool tree = false) { return {std::move(text), tree, {}}; }
  bool is_there(std::string_view text) { return *one_->exists(Context(), path(text)); }
  void write(std::string_view text, std::string_view data) {
    ASSERT_TRUE(one_->write(Context(), path(text), data, 0, WriteFlag::create).has_value());
  }

  std::shared_ptr<FileSystem> mem_;
  std::shared_ptr<MountTable> one_ = std::make_shared<MountTable>();
  std::shared_ptr<MountTable> two_ = std::make_shared<MountTable>();
  LockFiles ours_{one_, kExpire_ms};
  LockFiles theirs_{two_, kExpire_ms};
};

TEST_F(LockFilesTest, TokenTextIsReadBack) {
  const auto token = parse_lock_token("a:b:1700000000000000001:T");
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->owner, "a:b");
  EXPECT_TRUE(token->tree);
  EXPECT_EQ(lock_token_text(*token), "a:b:1700000000000000001:T");
  for (const char* wrong : {"", "x", "a:1", "a:1:X", "a:1x:E", "a::E"}) {
    EXPECT_FALSE(parse_lock_token(wrong).has_value()) << wrong;
  }
}

TEST_F(LockFilesTest, NamesAreThoseOfTheOriginal) {
  EXPECT_EQ(directory_lock_path("/data/d"), "/data/d/.path.ovlock");
  EXPECT_EQ(sidecar_lock_path("/data/中文 name..txt"), "/data/.exact.ovlock.name..txt.591847f8876e86f7");
}

TEST_F(LockFilesTest, ExactLocksExcludeEachOtherAndGo) {
  ASSERT_FALSE((*ours_.take({request("/local/d/f")}, "us")).has_value());
  const auto blocked = theirs_.take({request("/local/d/f")}, "they");
  ASSERT_TRUE(blocked.has_value());
  ASSERT_TRUE(blocked->has_value());
  EXPECT_EQ((*blocked)->owner, "us");
  EXPECT_TRUE(*theirs_.is_locked("/local/d/f"));
  EXPECT_FALSE(*theirs_.is_locked("/local/d/g"));
  ours_.give_back({request("/local/d/f")}, "us");
  EXPECT_FALSE(is_there(sidecar_lock_path("/local/d/f")));
  EXPECT_FALSE((*theirs_.take({request("/local/d/f")}, "they")).has_value());
}

TEST_F(LockFilesTest, TreeExcludesWhatIsBelowAndAbove) {
  ASSERT_FALSE((*ours_.take({request("/local/d", true)}, "us")).has_value());
  EXPECT_TRUE((*theirs_.take({request("/local/d/sub/f")}, "they")).has_value());
  EXPECT_TRUE((*theirs_.take({request("/local", true)}, "they")).has_value());
  EXPECT_FALSE((*theirs_.take({request("/local/e")}, "they")).has_value());
}

TEST_F(LockFilesTest, BatchIsTakenWholeOrNotAtAll) {
  ASSERT_FALSE((*theirs_.take({request("/local/b")}, "they")).has_value());
  EXPECT_TRUE((*ours_.take({request("/local/a"), request("/local/b")}, "us")).has_value());
  EXPECT_FALSE(is_there(sidecar_lock_path("/local/a")));
}

TEST_F(LockFilesTest, OldTokenIsRemovedAndYoungOneIsNot) {
  const int64_t now_ns = Clock::system().wall_ns();
  const std::string file = sidecar_lock_path("/local/f");
  write(file, lock_token_text({"dead", now_ns - (kExpire_ms - 5'000) * 1'000'000, false}));
  EXPECT_TRUE((*ours_.take({request("/local/f")}, "us")).has_value());
  write(file, lock_token_text({"dead", now_ns - (kExpire_ms + 1'000) * 1'000'000, false}));
  EXPECT_FALSE((*ours_.take({request("/local/f")}, "us")).has_value());
  EXPECT_EQ(ours_.stale_removed(), 1U);
}

// A crash between making and writing a lock file, or half a write, left a lock that never counted as stale.
class CaseA16LockFiles : public testing::Test {
 protected:
  // Takes a lock that `text` holds in a file of that age; "taken", "held" or the error.
  static std::string take_over(const std::string& text, int64_t age_ms) {
    const ManualClock clock(Clock::system().wall_ns() - age_ms * kNsPerMs);
    auto tree = std::make_shared<MountTable>();
    std::shared_ptr<FileSystem> mem = MemFileSystem::open(MemConfig(), clock).value();
    EXPECT_TRUE(tree->mount(*Path::parse("/local"), std::make_shared<StatsFileSystem>(mem)).has_value());
    const std::string file = sidecar_lock_path("/local/f");
    EXPECT_TRUE(tree->write(Context(), *Path::parse(file), text, 0, WriteFlag::create).has_value());
    LockFiles files(tree, kExpire_ms);
    const auto taken = files.take({{"/local/f", false, {}}}, "us");
    const std::string now = tree->read(Context(), *Path::parse(file), 0, 0)->str();
    if (!taken.has_value() || taken->has_value()) {
      EXPECT_EQ(now, text) << "whoever holds it keeps it";
      return taken.has_value() ? "held" : taken.error().text();
    }
    EXPECT_EQ(parse_lock_token(now)->owner, "us");
    EXPECT_EQ(files.stale_removed(), 1U) << "it was compared before it was removed";
    return "taken";
  }
};

TEST_F(CaseA16LockFiles, EmptyTruncatedGarbageAndFutureTokensAreRecoveredAfterExpiry) {
  const int64_t now_ns = Clock::system().wall_ns();
  const std::string whole = lock_token_text({"dead", now_ns, false});
  const std::string future = lock_token_text({"dead", now_ns + 86'400'000 * kNsPerMs, false});
  const std::string broken[] = {"garbage", std::string("\0\0\0\0", 4), whole.substr(0, whole.size() - 1), "a:1:X", ":"};
  for (const std::string& text : broken) {
    EXPECT_EQ(take_over(text, kExpire_ms + 1'000), "taken") << text;
    EXPECT_TRUE(take_over(text, kExpire_ms - 5'000).find("invalid lock token") != std::string::npos) << text;
  }
  EXPECT_EQ(take_over("", kExpire_ms + 1'000), "taken");
  EXPECT_EQ(take_over("", 0), "held");
  EXPECT_EQ(take_over(future, kExpire_ms + 1'000), "taken") << "a clock that was ahead does not lock for a day";
  EXPECT_EQ(take_over(future, kExpire_ms - 5'000), "held") << "its holder lives: the file is young";
}

// What could not be looked at may be held: an I/O error is no free lock, whichever call meets it.
TEST(LockFilesFaults, ALockFileThatCannotBeLookedAtIsNotFree) {
  const int64_t ahead_ns = Clock::system().wall_ns() + 86'400'000 * kNsPerMs;
  for (const std::string_view failing : {"read", "stat"}) {
    for (const std::string& text :
         {std::string(), std::string("garbage"), lock_token_text({"other", ahead_ns, false})}) {
      auto fs = std::make_shared<TestingFileSystem>();
      auto table = std::make_shared<MountTable>();
      const Path mount = *Path::parse("/m");
      ASSERT_TRUE(table->mount(mount, std::make_shared<StatsFileSystem>(fs)).has_value());
      const Path file = *Path::parse(sidecar_lock_path("/m/f"));
      ASSERT_TRUE(table->write(Context(), file, text, 0, WriteFlag::create).has_value());
      fs->set_hook([&](std::string_view operation, PathView path) -> std::optional<Error> {
        if (operation != failing || path != file.view().relative_to(mount)) return std::nullopt;
        return Error{ErrorCode::io, "no luck"};
      });
      LockFiles locks(table, kExpire_ms);
      const auto taken = locks.take({{"/m/f", false, {}}}, "us");
      ASSERT_FALSE(taken.has_value()) << failing << " of " << text;
      EXPECT_NE(taken.error().text().find("lock I/O error"), std::string::npos) << taken.error().text();
    }
  }
}

// Suffixes added to a long name must not make it too long.
TEST(CaseA31LockFiles, LockFilesOfLongNamesAreShort) {
  std::string cjk;
  for (int i = 0; i < 85; ++i) cjk += "\xe4\xb8\xad";
  for (const std::string& name : {std::string(250, 'n'), std::string(255, '.'), cjk, std::string(250, 'n') + ".lock"}) {
    const std::string file = sidecar_lock_path("/d/" + name);
    EXPECT_TRUE(Path::parse(file).has_value()) << file;
    EXPECT_LE(file.size(), 3U + 128U);
    EXPECT_NE(file, sidecar_lock_path("/d/" + name.substr(0, name.size() - 1) + "x")) << "and differ all the same";
  }
}

TEST_F(LockFilesTest, TokenMovesAlongWithItsDirectory) {
  const std::vector<LockRequest> both = {request("/local/d", true), request("/local/e")};
  ASSERT_FALSE((*ours_.take(both, "us")).has_value());
  ASSERT_TRUE(one_->rename(Context(), path("/local/d"), path("/local/e")).has_value());
  EXPECT_TRUE(is_there("/local/e/.path.ovlock"));
  ours_.moved(path("/local/d"), path("/local/e"));
  ours_.give_back(both, "us");
  EXPECT_FALSE(is_there("/local/e/.path.ovlock"));
  EXPECT_FALSE(is_there(sidecar_lock_path("/local/e")));
}

TEST_F(LockFilesTest, RefreshRenewsTheToken) {
  ASSERT_FALSE((*ours_.take({request("/local/f")}, "us")).has_value());
  const Path file = path(sidecar_lock_path("/local/f"));
  const auto before = parse_lock_token(one_->read(Context(), file, 0, 0)->view());
  ours_.refresh();
  const auto after = parse_lock_token(one_->read(Context(), file, 0, 0)->view());
  EXPECT_GT(after->time_ns, before->time_ns);
  ours_.give_back({request("/local/f")}, "us");
  EXPECT_FALSE(is_there(file.text()));
}

TEST_F(LockFilesTest, BookWaitsForAnotherProcess) {
  LockBook book(kExpire_ms, &ours_);
  ASSERT_FALSE((*theirs_.take({request("/local/f")}, "they")).has_value());
  const auto refused = book.acquire({{"/local/f", false, sidecar_lock_path("/local/f")}}, 0, "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "lock acquire timed out after 0ms");
  std::thread holder([&] { theirs_.give_back({request("/local/f")}, "they"); });
  const auto lease = book.acquire({{"/local/f", false, sidecar_lock_path("/local/f")}}, 10'000, "");
  holder.join();
  ASSERT_TRUE(lease.has_value());
  EXPECT_TRUE(*theirs_.is_locked("/local/f"));
  ASSERT_TRUE(book.release(lease->lease_ref, lease->ownership_ref).has_value());
  EXPECT_FALSE(*theirs_.is_locked("/local/f"));
}

TEST_F(LockFilesTest, ExactTokenThatBecameATreeIsRenewedAndGivenBack) {
  const LockRequest exact{"/local/d", false, directory_lock_path("/local/d")};
  const LockRequest tree{"/local/d", true, directory_lock_path("/local/d")};
  ASSERT_FALSE((*ours_.take({exact}, "us")).has_value());
  ASSERT_FALSE((*ours_.take({tree}, "us")).has_value());
  EXPECT_TRUE((*theirs_.take({request("/local/d/f")}, "they")).has_value());
  const Path file = path(directory_lock_path("/local/d"));
  const auto before = parse_lock_token(one_->read(Context(), file, 0, 0)->view());
  EXPECT_TRUE(before->tree);
  ours_.refresh();
  EXPECT_GT(parse_lock_token(one_->read(Context(), file, 0, 0)->view())->time_ns, before->time_ns);
  ours_.give_back({tree}, "us");
  EXPECT_TRUE(is_there(file.text()));
  ours_.give_back({exact}, "us");
  EXPECT_FALSE(is_there(file.text()));
}

TEST(LockBook, EachLeaseThatIsNotRefreshedIsTakenBack) {
  LockBook book(1);
  constexpr int64_t kLongEnough_ms = 60'000;
  for (uint64_t round = 0; round < 3; ++round) {
    for (const char* file : {"/a", "/b", "/c"}) {
      ASSERT_TRUE(book.acquire({{file, false, sidecar_lock_path(file)}}, kLongEnough_ms, "").has_value());
    }
  }
  EXPECT_GE(book.report().stale_removed, 6U);
  EXPECT_LE(book.report().active, 3U);
}

TEST_F(LockFilesTest, LeaseJoinsItsOwnersFile) {
  LockBook book(kExpire_ms, &ours_);
  const LockRequest wanted{"/local/d", false, directory_lock_path("/local/d")};
  const auto first = book.acquire({wanted}, 0, "");
  ASSERT_TRUE(first.has_value());
  const auto second = book.acquire({wanted}, 0, first->lease_ref);
  ASSERT_TRUE(second.has_value());
  ASSERT_TRUE(book.release(first->lease_ref, first->ownership_ref).has_value());
  EXPECT_TRUE(*theirs_.is_locked("/local/d"));
  ASSERT_TRUE(book.release(second->lease_ref, second->ownership_ref).has_value());
  EXPECT_FALSE(*theirs_.is_locked("/local/d"));
}

}  // namespace
}  // namespace ragfs::python
