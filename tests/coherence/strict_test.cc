// A provider that fails: what bypass and strict answer, and what no mode ever does: give old bytes.
#include <gtest/gtest.h>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

CoherenceConfig strict_config() {
  CoherenceConfig config;
  config.failure_mode = FailureMode::strict;
  config.guard.failures_to_open = 1000;
  config.retry_first_ms = 1;
  return config;
}

class StrictTest : public HookedFixture {
 protected:
  void SetUp() override { open_hooked(strict_config(), {}); }
};

TEST_F(StrictTest, AFailedEraseIsCacheNotUpdatedAndNothingOldIsServed) {
  ASSERT_TRUE(write("/f", "old"));
  EXPECT_EQ(read("/f"), "old");
  provider->add_rule({.op = scripted::Op::erase, .action = scripted::Action::fail, .code = ErrorCode::unavailable});
  const auto appended = cached->write(ctx, path_of("/f"), "+", 0, WriteFlag::append);
  EXPECT_EQ(kind_of(appended), "cache_not_updated");
  EXPECT_EQ(read_backend("/f"), "old+") << "the backend was changed";
  EXPECT_EQ(read("/f"), "old+");
  EXPECT_EQ(domain->counters().read(CacheCounter::cache_not_updated), 1U);
  provider->clear_rules();
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000))) << "the erase is made again";
  EXPECT_EQ(read("/f"), "old+");
}

TEST_F(StrictTest, AFailedPutIsCacheNotUpdated) {
  ASSERT_TRUE(write("/f", "old"));
  provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::fail, .code = ErrorCode::timeout});
  EXPECT_EQ(kind_of(cached->write(ctx, path_of("/f"), "new", 0, WriteFlag::create)), "cache_not_updated");
  EXPECT_EQ(read("/f"), "new");
}

// "Too large" and "full" are answers: the old value is erased, and that is all the cache has to know.
TEST_F(StrictTest, ARefusedPutWhoseOldValueIsErasedIsASuccess) {
  ASSERT_TRUE(write("/f", "old"));
  for (const ErrorCode code : {ErrorCode::too_large, ErrorCode::full, ErrorCode::invalid_argument}) {
    provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::fail, .code = code});
    EXPECT_TRUE(write("/f", kind_name(code)));
    EXPECT_EQ(read("/f"), kind_name(code));
    provider->clear_rules();
  }
}

TEST_F(StrictTest, ABackendErrorIsItselfEvenWhenTheCacheFailsToo) {
  ASSERT_TRUE(write("/f", "old"));
  provider->set_down(true);
  fail_operation("write", ErrorCode::permission_denied);
  EXPECT_EQ(kind_of(cached->write(ctx, path_of("/f"), "new", 0, WriteFlag::create)), "permission_denied");
}

TEST_F(StrictTest, WithTheBreakerOpenNothingIsChanged) {
  CoherenceConfig config = strict_config();
  config.guard.failures_to_open = 1;
  config.guard.first_pause_ms = 60'000;
  config.guard.max_pause_ms = 60'000;
  open_hooked(config, {});
  ASSERT_TRUE(write("/f", "old"));
  provider->set_down(true);
  (void)read("/f");
  ASSERT_EQ(domain->provider().state(), BreakerState::open);
  hooked->forget_calls();
  EXPECT_EQ(kind_of(cached->write(ctx, path_of("/f"), "new", 0, WriteFlag::create)), "unavailable");
  EXPECT_EQ(kind_of(cached->remove(ctx, path_of("/f"))), "unavailable");
  EXPECT_EQ(kind_of(cached->rename(ctx, path_of("/f"), path_of("/g"))), "unavailable");
  EXPECT_EQ(hooked->calls("write") + hooked->calls("remove") + hooked->calls("rename"), 0U);
  EXPECT_EQ(read("/f"), "old") << "reads go on";
}

// A process that only writes must not stay refused for ever: asking is what finds out that the provider is back.
TEST_F(StrictTest, AWriterAloneFindsOutThatTheProviderIsBack) {
  CoherenceConfig config = strict_config();
  config.guard.failures_to_open = 1;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 1;
  config.retry_first_ms = 60'000;  // no retry of the settler may do the writer's asking
  config.retry_most_ms = 60'000;
  open_hooked(config, {});
  provider->set_down(true);
  EXPECT_EQ(kind_of(cached->write(ctx, path_of("/f"), "one", 0, WriteFlag::create)), "cache_not_updated");
  ASSERT_EQ(domain->provider().state(), BreakerState::open);
  provider->set_down(false);
  const Deadline until = Deadline::in_ms(10'000);
  while (!write("/f", "two") && !until.expired()) {
  }
  EXPECT_EQ(read("/f"), "two");
  EXPECT_EQ(domain->provider().state(), BreakerState::closed);
}

class BypassTest : public HookedFixture {};

TEST_F(BypassTest, EveryOperationWorksWhileTheProviderIsDownFromTheStart) {
  provider->set_down(true);
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "one"));
  EXPECT_EQ(read("/d/f"), "one");
  ASSERT_TRUE(cached->write(ctx, path_of("/d/f"), "+", 0, WriteFlag::append));
  EXPECT_EQ(read("/d/f"), "one+");
  EXPECT_EQ(list("/d"), "f");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/f"), path_of("/d/g")));
  EXPECT_EQ(list("/d"), "g");
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/d")));
  EXPECT_EQ(list("/d"), "ERROR not_found");
}

TEST_F(BypassTest, ADyingProviderNeverGivesOldBytesBack) {
  CoherenceConfig config;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 1;
  config.retry_first_ms = 1;
  open_hooked(config, {});
  ASSERT_TRUE(write("/f", "old"));
  EXPECT_EQ(read("/f"), "old");
  provider->set_down(true);
  ASSERT_TRUE(write("/f", "new"));
  EXPECT_EQ(read("/f"), "new");
  provider->set_down(false);  // the old object is still in there
  const uint64_t before = hits();
  for (int i = 0; i < 1'000 && hits() == before; ++i) EXPECT_EQ(read("/f"), "new");
  EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
  const Deadline until = Deadline::in_ms(10'000);
  while (hits() == before && !until.expired()) EXPECT_EQ(read("/f"), "new");
  EXPECT_GT(hits(), before) << "the cache is in use again";
}

// A call that the breaker kept away was never sent, so no key is in doubt and no epoch is spent on an outage.
TEST_F(BypassTest, AnOutageMarksNoKeysBeyondTheCallsThatWereSent) {
  CoherenceConfig config;
  config.guard.failures_to_open = 2;
  config.guard.first_pause_ms = 60'000;
  config.guard.max_pause_ms = 60'000;
  config.table.max_marked_keys = 16;
  open_hooked(config, {});
  provider->set_down(true);
  for (int i = 0; i < 200; ++i) {
    const std::string path = "/f" + std::to_string(i);
    put_in_backend(path, "x");
    EXPECT_EQ(read(path), "x");
    EXPECT_TRUE(write(path, "y"));
    EXPECT_EQ(read(path), "y");
  }
  EXPECT_LE(domain->table().marked(), 2U);
  EXPECT_EQ(domain->counters().read(CacheCounter::new_epoch), 0U);
}

}  // namespace
}  // namespace ragfs
