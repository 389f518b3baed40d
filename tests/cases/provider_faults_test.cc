// Bug reports of caches whose store misbehaves (groups C, E and F): a refused value, a foreign value, an outage.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/cases/stack_fixture.h"

namespace ragfs {
namespace {

class CaseE05Cached : public CachedStack {};
// An update that the store did not admit left the older value to be returned.
TEST_P(CaseE05Cached, ARefusedUpdateLeavesNoOlderValue) {
  for (const ErrorCode code : {ErrorCode::full, ErrorCode::too_large, ErrorCode::unavailable, ErrorCode::timeout}) {
    open_stack({}, {});
    ASSERT_TRUE(write("/f", "v1"));
    expect_read("/f", "v1");
    provider->add_rule({.op = scripted::Op::put, .action = scripted::Action::fail, .code = code});
    ASSERT_TRUE(write("/f", "v2"));
    expect_read("/f", "v2");
    provider->clear_rules();
    expect_read("/f", "v2");
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseE05Cached, scripted_stacks(), stack_name);

// The update is too big for the embedded tier: the older value must be gone.
class CaseE05TooBig : public CachedStack {};
TEST_P(CaseE05TooBig, AnUpdateThatOutgrowsTheCacheIsServedFromTheBackend) {
  CachedMountConfig mount;
  mount.policy.max_file_size_bytes = 100;
  open_stack({}, mount);
  ASSERT_TRUE(write("/f", "small"));
  expect_read("/f", "small");
  ASSERT_TRUE(write("/f", std::string(101, 'x')));
  expect_read("/f", std::string(101, 'x'));
  ASSERT_TRUE(write("/f", "small again"));
  expect_read("/f", "small again");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseE05TooBig, all_stacks(), stack_name);

class CaseE07Cached : public CachedStack {};
TEST_P(CaseE07Cached, ABurstOverTheMemoryIsRightForEveryFile) {
  constexpr int kFiles = 1'500;
  for (int i = 0; i < kFiles; ++i) ASSERT_TRUE(write("/f" + std::to_string(i), std::string(30'000, 'a' + i % 26)));
  for (int i = 0; i < kFiles; ++i) {
    ASSERT_EQ(read("/f" + std::to_string(i)), std::string(30'000, 'a' + i % 26)) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseE07Cached, all_stacks(), stack_name);

class CaseE08 : public CachedStack {};
TEST_P(CaseE08, ExistsAndReadAgreeInEveryState) {
  const auto agree = [&](std::string_view path, const char* when) {
    for (int pass = 0; pass < 2; ++pass) {
      const bool there = *cached->exists(ctx, path_of(path));
      EXPECT_EQ(there, !read(path).starts_with("ERROR not_found")) << when << " " << path;
      EXPECT_EQ(there, stat_size(path) != "ERROR not_found") << when << " " << path;
    }
  };
  agree("/f", "never there");
  put_in_backend("/f", "x");
  agree("/f", "not cached");
  (void)read("/f");
  agree("/f", "cached");
  (void)list("/");
  agree("/f", "in a cached listing");
  agree("/g", "absent from a cached listing");
  domain->new_epoch();
  agree("/f", "evicted");
  ASSERT_TRUE(cached->rename(ctx, path_of("/f"), path_of("/g")));
  agree("/f", "moved away");
  agree("/g", "moved here");
  ASSERT_TRUE(cached->remove(ctx, path_of("/g")));
  agree("/g", "removed");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseE08, all_stacks(), stack_name);

class CaseE11 : public CachedStack {};
TEST_P(CaseE11, BackendErrorsInTheMiddleOfAFillCauseNoErrorLater) {
  put_in_backend("/f", std::string(5'000, 'x'));
  std::atomic<int> calls{0};
  hooked->set_after([&](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "read_file" || calls++ % 2 == 1) return std::nullopt;
    return Error{calls % 4 == 1 ? ErrorCode::io : ErrorCode::timeout, std::string(path.text())};
  });
  for (int i = 0; i < 4; ++i) {
    domain->new_epoch();
    const std::string text = read("/f");
    EXPECT_TRUE(text == std::string(5'000, 'x') || text == "ERROR io" || text == "ERROR timeout");
  }
  hooked->set_after({});
  expect_read("/f", std::string(5'000, 'x'));
  EXPECT_EQ(domain->counters().read(CacheCounter::damaged), 0U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseE11, all_stacks(), stack_name);

class CaseF01 : public CachedStack {};
// A late reply was taken for another key's value: each value carries its key, and is checked.
TEST_P(CaseF01, AnotherKeysValueIsAMiss) {
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/a", "value of a"));
  ASSERT_TRUE(write("/d/b", "value of b"));
  EXPECT_EQ(list("/d"), "a b");
  std::vector<std::string> keys = provider->keys();
  std::vector<std::string> objects;
  for (const std::string& key : keys) objects.push_back(*provider->peek(key));
  for (size_t shift = 1; shift < keys.size(); ++shift) {
    for (size_t i = 0; i < keys.size(); ++i) provider->poke(keys[i], objects[(i + shift) % keys.size()]);
    EXPECT_EQ(read("/d/a"), "value of a");
    EXPECT_EQ(read("/d/b"), "value of b");
    EXPECT_EQ(list("/d"), "a b");
  }
  EXPECT_GT(domain->counters().read(CacheCounter::damaged), 0U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF01, scripted_stacks(), stack_name);

class CaseF07 : public CachedStack {};
// An outage under load filled the pool with dead calls; the store was back, the client never.
TEST_P(CaseF07, HitsReturnAfterAnOutageUnderLoad) {
  CoherenceConfig config;
  config.guard = {.operation_timeout_ms = 5, .concurrency = 4, .first_pause_ms = 1, .max_pause_ms = 5};
  open_stack(config, {});
  ProviderCapabilities remote = ScriptedProvider::all_capabilities();
  remote.zero_copy = false;
  provider->set_capabilities(remote);
  domain = std::make_shared<CoherenceDomain>(config, provider);
  cached = std::make_shared<CachedFileSystem>(backend, domain, CachedMountConfig{});
  for (int i = 0; i < 16; ++i) put_in_backend("/f" + std::to_string(i), std::to_string(i));
  provider->add_rule({.delay_ms = 60'000});  // nothing answers in time
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 16; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < 10; ++i) EXPECT_EQ(read("/f" + std::to_string(t)), std::to_string(t));
      });
    }
  }
  EXPECT_NE(domain->provider().state(), BreakerState::closed);
  provider->clear_rules();
  const uint64_t before = hits();
  const Deadline until = Deadline::in_ms(10'000);
  while (hits() < before + 100 && !until.expired()) EXPECT_EQ(read("/f1"), "1");
  EXPECT_GE(hits(), before + 100);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF07, scripted_stacks(), stack_name);

class CaseF11 : public CachedStack {};
// The version key itself was evicted, the counter began at 0 and old entries matched again.
TEST_P(CaseF11, LosingTheGenerationKeyRevivesNothing) {
  put_in_backend("/d/f", "old");
  EXPECT_EQ(read("/d/f"), "old");
  const ScriptedProvider::State before = provider->snapshot();
  ASSERT_TRUE(cached->rename(ctx, path_of("/d"), path_of("/e")));
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/f", "new"));
  for (const std::string& key : provider->keys()) {
    if (key.starts_with("subtree:") || key.starts_with("epoch:")) provider->poke_erase(key);
  }
  for (const auto& [key, stored] : before) provider->poke(key, stored.value.view());
  expect_read("/d/f", "new");
  provider->wipe();
  expect_read("/d/f", "new");
  // A new process: its epoch is random, so nothing of the old one matches, whatever it finds.
  for (const auto& [key, stored] : before) provider->poke(key, stored.value.view());
  second.reset();
  open_over({}, {});
  EXPECT_EQ(read("/d/f"), "new");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF11, scripted_stacks(), stack_name);

class CaseF17 : public CachedStack {};
TEST_P(CaseF17, AProviderThatComesLaterIsJoined) {
  CoherenceConfig config;
  config.guard.first_pause_ms = 1;
  config.guard.max_pause_ms = 2;
  provider->set_down(true);
  second.reset();
  open_over(config, {});
  put_in_backend("/f", "x");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read("/f"), "x");
  EXPECT_EQ(hits(), 0U);
  provider->set_down(false);
  const Deadline until = Deadline::in_ms(10'000);
  while (hits() == 0 && !until.expired()) EXPECT_EQ(read("/f"), "x");
  EXPECT_GT(hits(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF17, scripted_stacks(), stack_name);

class CaseF19 : public CachedStack {};
// The leader of a merged read dies and everybody asks the backend at once.
TEST_P(CaseF19, ALostLeaderIsOneErrorAndNoStampede) {
  constexpr size_t kReaders = 500;
  put_in_backend("/f", "x");
  scripted::Gate gate;
  hooked->set_before([hook = gate.hook()](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "read_file") return std::nullopt;
    hook(path.text());
    return Error{ErrorCode::io, std::string().substr(1)};  // it throws
  });
  std::vector<std::string> answers(kReaders);
  {
    std::vector<std::jthread> readers;
    for (size_t i = 0; i < kReaders; ++i) readers.emplace_back([&, i] { answers[i] = read("/f"); });
    const Deadline until = Deadline::in_ms(20'000);
    const auto& counts = domain->file_flights().counts();
    while (counts.followers.load() + counts.leaders.load() < kReaders && !until.expired()) std::this_thread::yield();
    gate.open();
  }
  for (const std::string& answer : answers) EXPECT_EQ(answer, "ERROR internal");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  hooked->set_before({});
  expect_read("/f", "x");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF19, all_stacks(), stack_name);

class CaseF20 : public CachedStack {};
// One reader misses and reads old bytes; a writer writes and invalidates; the reader stores the old bytes.
TEST_P(CaseF20, TheSlowReadersStoreIsRefused) {
  put_in_backend("/f", "old");
  for (const char* point : {"fill.after_backend_read", "fill.before_put"}) {
    domain->new_epoch();
    put_in_backend("/f", "old");
    auto armed = PausePoints::arm(point);
    std::jthread slow([this] { (void)read("/f"); });
    ASSERT_TRUE(armed->wait_for_arrival());
    ASSERT_TRUE(second->write(ctx, path_of("/f"), "new", 0, WriteFlag::create));
    armed->release();
    slow.join();
    PausePoints::clear();
    expect_read("/f", "new");
    EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
    expect_read("/f", "new");
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseF20, all_stacks(), stack_name);

}  // namespace
}  // namespace ragfs
