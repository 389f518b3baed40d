// Bugs of the code of lives (3.6, 3.9), each with a test that has its name.
#include "tests/lives/lives_fixture.h"

namespace ragfs {
namespace {

using LivesRegression = LivesFixture;

// A mutation that came while a close waited was admitted under a lock that the close gave back afterwards; the later
// ones were not asked again, and went on beside the next holder.
TEST_F(LivesRegression, WhoWasAdmittedDuringACloseAsksAgainAfterIt) {
  put_in_backend("/d/f", "old");
  auto first = begin();
  (void)first->read("/d/f");
  bool once = true;
  PausePoints::set_handler("close.drained", [&] {
    if (!std::exchange(once, false)) return;
    EXPECT_EQ(first->write("/d/g", "late"), "ok");
  });
  (void)first->close();
  ASSERT_FALSE(once);
  auto second = begin();
  ASSERT_EQ(second->refusal, "");
  EXPECT_EQ(second->read("/d/f"), "old");
  EXPECT_EQ(first->write("/d/f", "new"), "read_only");
  EXPECT_FALSE(stale(*second, "/d/f"));
}

// The same, and the next holder has come and gone in order by then.
TEST_F(LivesRegression, AMutationAfterACloseEndsTheEpochOfALifeInBetween) {
  put_in_backend("/d/f", "old");
  auto first = begin();
  bool once = true;
  PausePoints::set_handler("close.drained", [&] {
    if (!std::exchange(once, false)) return;
    EXPECT_EQ(first->write("/d/g", "late"), "ok");
  });
  (void)first->close();
  live_and_close("/d/f");
  EXPECT_EQ(first->write("/d/f", "new"), "ok");
  first->end();
  EXPECT_FALSE(stale(*begin(), "/d/f"));
}

// A provider that was replaced just as a life had joined left it apart, for good: it took itself for joined.
TEST_F(LivesRegression, LeftAgainAtTheMomentOfJoiningItJoinsOnceMore) {
  put_in_backend("/d/f", "text");
  provider->set_down(true);
  auto run = begin();
  ASSERT_EQ(run->stage(), LifeStage::apart);
  provider->set_down(false);
  bool once = true;
  PausePoints::set_handler("life.after_begin_epoch", [&] {
    if (std::exchange(once, false)) run->domain->new_epoch();
  });
  run->life->tend();
  ASSERT_FALSE(once);
  EXPECT_EQ(run->stage(), LifeStage::apart);
  run->life->tend();
  EXPECT_EQ(run->stage(), LifeStage::joined);
  EXPECT_FALSE(run->hits("/d/f"));
  EXPECT_TRUE(run->hits("/d/f"));
}

// Past the places that a child of fork() closes, a lock was taken all the same, and such a child kept it held.
TEST_F(LivesRegression, ALockThatAChildCouldNotLetGoIsNotTaken) {
  auto run = begin();
  Result<LockKind> held = LockKind::shared;
  uint64_t taken = 0;
  for (; taken < 2'000 && held; ++taken) held = run->life->hold(1'000'000 + taken);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::would_block) << held.error().text();
  EXPECT_EQ(taken, 512U) << "with the one of the mount";
}

}  // namespace
}  // namespace ragfs
