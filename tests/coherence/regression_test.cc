// Bugs of the coherence protocol's code, each with a test that has its name.
#include <gtest/gtest.h>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"
#include "tests/coherence/watched_fixture.h"

namespace ragfs {
namespace {

const Path kFile = path_of("/d/f");

class CoherenceRegression : public WatchedFixture {};

// A write that began beside a timed-out one stored its bytes after the timed-out one had landed and been let go.
TEST_F(CoherenceRegression, PutBesideALateCallOutlivedItsRecord) {
  for (const bool rule : {true, false}) {
    open_watched({}, {}, 1);
    put_in_backend("/d/f", "old");
    watched->force_next(Fate::time_out_late);
    // The settler must not end the first write's marks before the second write has begun.
    auto finish = PausePoints::arm("settler.before_finish_unknown");
    ASSERT_FALSE(write("/d/f", "late"));
    std::optional<RuleSwitch> off;
    if (!rule) off.emplace(Rule::kNoPutBesideLateCall);
    auto publish = PausePoints::arm("mutation.before_publish");
    std::jthread writer([&] { EXPECT_TRUE(write("/d/f", "second")); });
    ASSERT_TRUE(publish->wait_for_arrival());
    ASSERT_EQ(watched->land_now(), 1U);
    finish->release();
    ASSERT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
    publish->release();
    writer.join();
    EXPECT_EQ(read("/d/f"), rule ? "late" : "second");
    EXPECT_EQ(read_backend("/d/f"), "late");
    PausePoints::clear();
  }
}

// A fill remembered "not there" after a creation had forgotten it and before the creation's record was let go.
TEST_F(CoherenceRegression, AbsenceRememberedBesideACreationOutlivedItsRecord) {
  open_watched({}, with_negative("f"));
  ASSERT_TRUE(mkdir("/d"));
  auto remember = PausePoints::arm("negative.before_remember");
  std::jthread reader([&] { EXPECT_EQ(read("/d/f"), "ERROR not_found"); });
  ASSERT_TRUE(remember->wait_for_arrival());
  auto publish = PausePoints::arm("mutation.before_publish");
  std::jthread writer([&] { EXPECT_TRUE(cached->create(ctx, kFile)); });
  ASSERT_TRUE(publish->wait_for_arrival());
  remember->release();
  reader.join();
  publish->release();
  writer.join();
  EXPECT_EQ(read("/d/f"), "");
}

// A change of epoch dropped the record of a mutation that a fill of the new epoch had to be refused by.
TEST_F(CoherenceRegression, NewEpochDroppedARecordOfItsOwnTime) {
  open_watched({}, {});
  put_in_backend("/d/f", "old");
  auto reset = PausePoints::arm("epoch.before_reset");
  std::jthread changer([&] { domain->new_epoch(); });
  ASSERT_TRUE(reset->wait_for_arrival());
  auto put = PausePoints::arm("fill.before_put");
  std::jthread reader([&] { EXPECT_EQ(read("/d/f"), "old"); });
  ASSERT_TRUE(put->wait_for_arrival());
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  reset->release();
  changer.join();
  put->release();
  reader.join();
  EXPECT_EQ(read("/d/f"), "ERROR not_found");
}

// A change of epoch took off the mark of a put that had been made in the new epoch and could still land.
TEST_F(CoherenceRegression, NewEpochDroppedAMarkOfItsOwnTime) {
  open_watched({}, {});
  put_in_backend("/d/f", "old");
  auto reset = PausePoints::arm("epoch.before_reset");
  std::jthread changer([&] { domain->new_epoch(); });
  ASSERT_TRUE(reset->wait_for_arrival());
  provider->add_rule({.op = ScriptedProvider::Op::put, .action = ScriptedProvider::Action::land_late, .times = 1});
  EXPECT_EQ(read("/d/f"), "old");
  reset->release();
  changer.join();
  ASSERT_TRUE(cached->remove(ctx, kFile));
  ASSERT_TRUE(domain->settler().drain(Deadline::in_ms(20'000)));
  EXPECT_EQ(provider->land_all(), 1U);
  EXPECT_EQ(read("/d/f"), "ERROR not_found");
}

// A copy that had seen its target's directory made it again after it had been removed, and nobody was told.
TEST_F(CoherenceRegression, CopyMadeAParentThatWasRemovedAfterItLooked) {
  for (const bool copies : {true, false}) {
    open_watched({}, {});
    put_in_backend("/a/from", "bytes");
    put_in_backend("/a/d/x", "x");
    ASSERT_TRUE(cached->remove(ctx, path_of("/a/d/x")));
    EXPECT_EQ(list("/a"), "d from");
    auto before = PausePoints::arm("mutation.before_backend");
    std::jthread maker([&] {
      const Path to = path_of("/a/d/f");
      EXPECT_TRUE(copies ? cached->copy(ctx, path_of("/a/from"), to).has_value()
                         : cached->ensure_parent_dirs(ctx, to, kDefaultDirMode).has_value());
    });
    ASSERT_TRUE(before->wait_for_arrival());
    Context brief;
    brief.deadline = Deadline::in_ms(50);
    const bool removed = cached->remove(brief, path_of("/a/d")).has_value();
    if (removed) {
      EXPECT_EQ(list("/a"), "from");
    }
    before->release();
    maker.join();
    EXPECT_EQ(list("/a"), "d from");
    PausePoints::clear();
  }
}

// The way that most hits go counted the hit whose checksum was due, and the way that would have checked it took the
// next.
TEST_F(CoherenceRegression, SampledChecksumsAreCheckedOnTheHitPath) {
  const std::shared_ptr<CacheProvider> embedded = EmbeddedProvider::create({}).value();
  put_in_backend("/d/f", "right bytes");
  cached.reset();
  domain = std::make_shared<CoherenceDomain>(CoherenceConfig{}, embedded);
  cached = std::make_shared<CachedFileSystem>(backend, domain, CachedMountConfig{});
  EXPECT_EQ(read("/d/f"), "right bytes");
  const Bytes cached_bytes = cached->read(ctx, kFile, 0, 0).value();
  *const_cast<char*>(cached_bytes.data()) = 'R';  // memory that went bad
  for (int i = 0; i < 1'100; ++i) (void)read("/d/f");
  EXPECT_EQ(domain->counters().read(CacheCounter::damaged), 1U);
  EXPECT_EQ(read("/d/f"), "right bytes");
}

// verify() left a wrong listing in place when the directory could not be listed once more.
TEST_F(HookedFixture, VerifyRefusesAWrongListingOfADirectoryThatCannotBeListedAgain) {
  put_in_backend("/d/f", "text");
  ASSERT_TRUE(cached->read_dir(ctx, path_of("/d")));
  put_in_backend("/d/behind", "text");
  int listed = 0;
  hooked->set_before([&](std::string_view called, PathView path) {
    if (called != "read_dir" || path.text() != "/d" || ++listed < 2) return std::optional<Error>();
    return std::optional(Error{ErrorCode::io, "/d"});
  });
  VerifyReport report;
  ASSERT_TRUE(cached->verify(ctx, path_of("/d"), report));
  EXPECT_EQ(report.wrong, 1U);
  EXPECT_EQ(listed, 2);
  hooked->set_before({});
  const auto entries = cached->read_dir(ctx, path_of("/d"));
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 2U);
}

}  // namespace
}  // namespace ragfs
