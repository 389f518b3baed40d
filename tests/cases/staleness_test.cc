// Bug reports of other caches (groups B, C and D): whatever happens in between, no reader gets old bytes.
#include <gtest/gtest.h>

#include <thread>

#include "tests/cases/stack_fixture.h"

namespace ragfs {
namespace {

class CaseB02 : public CachedStack {};
// A hot cache still served a removed key; a fill in flight published it again.
TEST_P(CaseB02, AFillInFlightDoesNotBringARemovedFileBack) {
  put_in_backend("/f", "old");
  auto armed = PausePoints::arm("fill.before_put");
  std::jthread slow([this] { (void)read("/f"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  armed->release();
  slow.join();
  expect_read("/f", "ERROR not_found");
  ASSERT_TRUE(write("/f", "new"));
  expect_read("/f", "new");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseB02, all_stacks(), stack_name);

class CaseB16 : public CachedStack {};
// Memory was reused while a slow reader still looked at it: a reader's bytes stay its own.
TEST_P(CaseB16, AReadersBytesOutliveOverwriteAndEviction) {
  const std::string old(4'096, 'o');
  ASSERT_TRUE(write("/f", old));
  const Result<Bytes> held = cached->read(ctx, path_of("/f"), 0, 0);
  const Result<Bytes> range = cached->read(ctx, path_of("/f"), 100, 200);
  ASSERT_TRUE(held && range);
  EXPECT_EQ(hits(), 2U);
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(write("/f" + std::to_string(i % 700), std::string(40'000, 'n')));
  ASSERT_TRUE(write("/f", std::string(4'096, 'n')));
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  EXPECT_EQ(held->view(), old);
  EXPECT_EQ(range->view(), old.substr(100, 200));
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseB16, all_stacks(), stack_name);

class CaseB22Cached : public CachedStack {};
TEST_P(CaseB22Cached, EmptyFileEmptyDirectoryAndNothingAreThreeAnswers) {
  put_in_backend("/empty", "");
  ASSERT_TRUE(mkdir("/dir"));
  expect_read("/empty", "");
  expect_read("/dir", "ERROR is_a_directory");
  expect_read("/absent", "ERROR not_found");
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(list("/dir"), "");
    EXPECT_EQ(list("/absent"), "ERROR not_found");
    EXPECT_EQ(list("/empty"), "ERROR not_a_directory");
  }
  EXPECT_EQ(hits(), 1U) << "the empty file is a hit";
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseB22Cached, all_stacks(), stack_name);

class CaseC01 : public CachedStack {};
// A get of a key that had just been deleted retried until its deadline.
TEST_P(CaseC01, AReadOfWhatWasJustDeletedIsOneBackendCall) {
  ASSERT_TRUE(write("/f", "x"));
  EXPECT_EQ(read("/f"), "x");
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  hooked->forget_calls();
  EXPECT_EQ(read("/f"), "ERROR not_found");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseC01, all_stacks(), stack_name);

class CaseC20 : public CachedStack {};
TEST_P(CaseC20, ReadingDoesNotUseAnObjectUp) {
  ASSERT_TRUE(write("/f", "x"));
  hooked->forget_calls();
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(read("/f"), "x");
    EXPECT_EQ(read_second("/f"), "x");
  }
  EXPECT_EQ(hooked->calls("read_file"), 0U);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseC20, all_stacks(), stack_name);

class CaseD05 : public CachedStack {};
// One flipped byte of a cached object reached the application, in ranges above all.
TEST_P(CaseD05, AFlippedByteAnywhereIsAMissAndCounted) {
  CoherenceConfig config;
  config.verify_dram = VerifyDram::always;
  open_stack(config, {});
  domain = std::make_shared<CoherenceDomain>(config, provider);
  cached = std::make_shared<CachedFileSystem>(backend, domain, CachedMountConfig{});
  put_in_backend("/f", "0123456789");
  EXPECT_EQ(read("/f"), "0123456789");
  ASSERT_EQ(provider->keys().size(), 1U);
  const std::string key = provider->keys().front();
  const std::string object = *provider->peek(key);
  for (size_t at = 0; at < object.size(); ++at) {
    std::string damaged = object;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    provider->poke(key, damaged);
    if (at % 2 == 0) {
      EXPECT_EQ(read("/f"), "0123456789") << at;
    } else {
      EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 2, 3)), "234") << at;
    }
    EXPECT_EQ(stat_size("/f"), "10") << at;
    EXPECT_EQ(domain->counters().read(CacheCounter::damaged), at + 1) << "dropped and counted once";
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD05, scripted_stacks(), stack_name);

class CaseD08 : public CachedStack {};
TEST_P(CaseD08, ACachedSizeNeverCutsARead) {
  ASSERT_TRUE(write("/f", "short"));
  EXPECT_EQ(second->stat(ctx, path_of("/f"))->size, 5U);
  EXPECT_EQ(list("/"), "f");
  ASSERT_TRUE(cached->write(ctx, path_of("/f"), " and now longer", 0, WriteFlag::append));
  expect_read("/f", "short and now longer");
  EXPECT_EQ(second->stat(ctx, path_of("/f"))->size, 20U);
  EXPECT_EQ(text_of(second->read(ctx, path_of("/f"), 5, 100)), " and now longer");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD08, all_stacks(), stack_name);

class CaseD10 : public CachedStack {};
// Directory times that never change: cached listings must not rely on them.
TEST_P(CaseD10, ListingsDoNotRelyOnDirectoryTimes) {
  hooked->mutable_traits().directory_times = false;
  ASSERT_TRUE(mkdir("/d"));
  EXPECT_EQ(list("/d"), "");
  ASSERT_TRUE(write("/d/a", "1"));
  EXPECT_EQ(list("/d"), "a");
  ASSERT_TRUE(second->write(ctx, path_of("/d/b"), "2", 0, WriteFlag::create));
  EXPECT_EQ(list("/d"), "a b");
  ASSERT_TRUE(cached->remove(ctx, path_of("/d/a")));
  EXPECT_EQ(list("/d"), "b");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD10, all_stacks(), stack_name);

class CaseD16Cached : public CachedStack {};
TEST_P(CaseD16Cached, WhatWasRememberedAsAbsentIsVisibleOnceCreated) {
  CachedMountConfig mount;
  mount.policy.negative_ttl_ms = 1'000;
  open_stack({}, mount);
  for (int round = 0; round < 3; ++round) {
    expect_read("/.abstract.md", "ERROR not_found");
    EXPECT_EQ(stat_size("/.abstract.md"), "ERROR not_found");
    ASSERT_TRUE(second->write(ctx, path_of("/.abstract.md"), "there", 0, WriteFlag::create_new));
    expect_read("/.abstract.md", "there");
    EXPECT_EQ(stat_size("/.abstract.md"), "5");
    EXPECT_EQ(list("/"), ".abstract.md");
    ASSERT_TRUE(cached->remove(ctx, path_of("/.abstract.md")));
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD16Cached, all_stacks(), stack_name);

class CaseD17 : public CachedStack {};
// Overwritten with other lengths while ranges were cached: no read mixes two versions.
TEST_P(CaseD17, ARangeIsOfOneVersion) {
  const std::string a(1'000, 'a');
  ASSERT_TRUE(write("/f", a));
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 0, 500)), a.substr(0, 500));
  for (const size_t size : {2'000, 100, 1'000}) {
    const std::string next(size, static_cast<char>('b' + size % 7));
    ASSERT_TRUE(second->write(ctx, path_of("/f"), next, 0, WriteFlag::create));
    for (const size_t offset : {0, 50, 500, 1'500}) {
      const std::string expected = offset >= size ? "" : next.substr(offset, 400);
      EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), offset, 400)), expected) << size << " " << offset;
    }
    expect_read("/f", next);
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD17, all_stacks(), stack_name);

class CaseD19 : public CachedStack {};
TEST_P(CaseD19, DeletedOrRewrittenWhileItsMetaIsCached) {
  ASSERT_TRUE(write("/f", "one"));
  EXPECT_EQ(stat_size("/f"), "3");
  ASSERT_TRUE(second->remove(ctx, path_of("/f")));
  EXPECT_EQ(stat_size("/f"), "ERROR not_found");
  expect_read("/f", "ERROR not_found");
  ASSERT_TRUE(second->write(ctx, path_of("/f"), "rewritten", 0, WriteFlag::create));
  expect_read("/f", "rewritten");
  EXPECT_EQ(stat_size("/f"), "9");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD19, all_stacks(), stack_name);

class CaseD25 : public CachedStack {};
// The upload failed, and the cache kept the new content; or it timed out and landed.
TEST_P(CaseD25, AFailedWriteShowsWhatTheBackendHolds) {
  ASSERT_TRUE(write("/f", "old"));
  expect_read("/f", "old");
  for (const ErrorCode code : {ErrorCode::permission_denied, ErrorCode::io, ErrorCode::timeout, ErrorCode::network}) {
    fail_operation("write", code);
    EXPECT_FALSE(write("/f", "never there"));
    hooked->set_before({});
    expect_read("/f", "old");
  }
  hooked->set_after([](std::string_view operation, PathView path) -> std::optional<Error> {
    if (operation != "write") return std::nullopt;
    return Error{ErrorCode::timeout, std::string(path.text())};
  });
  EXPECT_FALSE(write("/f", "landed"));
  hooked->set_after({});
  expect_read("/f", "landed");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD25, all_stacks(), stack_name);

class CaseD26 : public CachedStack {};
TEST_P(CaseD26, RenamesOfCachedFilesAndDirectories) {
  ASSERT_TRUE(mkdir("/d"));
  ASSERT_TRUE(write("/d/a", "aaa"));
  ASSERT_TRUE(write("/d/b", "bbb"));
  expect_read("/d/a", "aaa");
  expect_read("/d/b", "bbb");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/a"), path_of("/d/c")));
  expect_read("/d/c", "aaa");
  expect_read("/d/a", "ERROR not_found");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d/c"), path_of("/d/b")));
  expect_read("/d/b", "aaa");
  expect_read("/d/c", "ERROR not_found");
  ASSERT_TRUE(cached->rename(ctx, path_of("/d"), path_of("/e")));
  expect_read("/e/b", "aaa");
  expect_read("/d/b", "ERROR not_found");
  EXPECT_EQ(list("/"), "e");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD26, all_stacks(), stack_name);

class CaseD28 : public CachedStack {};
// ls refreshed the fingerprint and so blessed older data of the same size for ever.
TEST_P(CaseD28, FreshMetaDoesNotBlessOlderData) {
  CoherenceConfig config;
  config.default_ttl_ms = 1'000;
  open_stack(config, {}, clock);
  put_in_backend("/f", "old");
  EXPECT_EQ(read("/f"), "old");
  clock.advance_ms(900);
  put_in_backend("/f", "new");
  EXPECT_EQ(list("/"), "f");
  (void)stat_size("/f");
  Context bypass;
  bypass.bypass_cache = true;
  ASSERT_TRUE(cached->stat(bypass, path_of("/f")));
  clock.advance_ms(100);
  EXPECT_EQ(list("/"), "f");
  EXPECT_EQ(read("/f"), "new");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD28, all_stacks(), stack_name);

class CaseD29 : public CachedStack {};
TEST_P(CaseD29, WhatIsDeletedBehindTheCacheIsGoneAfterTheTtlEverywhere) {
  CoherenceConfig config;
  config.default_ttl_ms = 1'000;
  open_stack(config, {}, clock);
  put_in_backend("/f", "x");
  EXPECT_EQ(read("/f"), "x");
  EXPECT_EQ(list("/"), "f");
  ASSERT_TRUE(backend->remove(ctx, path_of("/f")));
  clock.advance_ms(1'000);
  expect_read("/f", "ERROR not_found");
  EXPECT_EQ(stat_size("/f"), "ERROR not_found");
  EXPECT_EQ(list("/"), "");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD29, all_stacks(), stack_name);

class CaseD32 : public CachedStack {};
// A slow listing put entries back that had been deleted meanwhile.
TEST_P(CaseD32, ASlowListingIsNotCachedOverAMutation) {
  for (const char* point : {"fill.after_backend_list", "fill.before_put"}) {
    open_stack({}, {});
    put_in_backend("/d/a", "1");
    put_in_backend("/d/b", "2");
    auto armed = PausePoints::arm(point);
    std::jthread slow([this] { (void)list("/d"); });
    ASSERT_TRUE(armed->wait_for_arrival());
    ASSERT_TRUE(second->remove(ctx, path_of("/d/a")));
    ASSERT_TRUE(second->write(ctx, path_of("/d/c"), "3", 0, WriteFlag::create));
    EXPECT_EQ(list("/d"), "b c") << point;
    armed->release();
    slow.join();
    PausePoints::clear();
    EXPECT_EQ(list("/d"), "b c") << point;
    EXPECT_EQ(stat_size("/d/a"), "ERROR not_found") << point;
  }
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD32, all_stacks(), stack_name);

class CaseD37 : public CachedStack {};
TEST_P(CaseD37, NoRangeSurvivesDeleteAndRecreate) {
  ASSERT_TRUE(write("/f", "oldold"));
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 0, 3)), "old");
  ASSERT_TRUE(cached->remove(ctx, path_of("/f")));
  ASSERT_TRUE(cached->create(ctx, path_of("/f")));
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 0, 3)), "");
  ASSERT_TRUE(write("/f", "new"));
  EXPECT_EQ(text_of(cached->read(ctx, path_of("/f"), 0, 3)), "new");
  expect_read("/f", "new");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD37, all_stacks(), stack_name);

class CaseD43Cached : public CachedStack {};
TEST_P(CaseD43Cached, AReaderOfAFileThatIsReplacedAllTheTimeNeverMissesIt) {
  ASSERT_TRUE(write("/f", "0"));
  std::atomic<bool> stop{false};
  std::vector<std::jthread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&, t] {
      uint64_t last = 0;
      while (!stop) {
        const std::string text = t == 0 ? read("/f") : read_second("/f");
        ASSERT_FALSE(text.starts_with("ERROR")) << text;
        const uint64_t now = std::stoull(text);
        ASSERT_GE(now, last) << "a read went back in time";
        last = now;
      }
    });
  }
  for (int i = 1; i <= 500; ++i) {
    ASSERT_TRUE(write("/next", std::to_string(i)));
    ASSERT_TRUE(cached->rename(ctx, path_of("/next"), path_of("/f")));
  }
  stop = true;
  readers.clear();
  expect_read("/f", "500");
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD43Cached, all_stacks(), stack_name);

class CaseD44Cached : public CachedStack {};
TEST_P(CaseD44Cached, OneMtimeForOneWriteWhoeverAsks) {
  const auto written = cached->write(ctx, path_of("/f"), "x", 0, WriteFlag::create);
  ASSERT_TRUE(written);
  const auto mtime = [&](CachedFileSystem& fs) { return fs.stat(ctx, path_of("/f"))->mtime_ns; };
  EXPECT_EQ(mtime(*cached), written->meta.mtime_ns);
  EXPECT_EQ(mtime(*second), written->meta.mtime_ns);
  (void)list("/");
  domain->new_epoch();  // as if evicted
  EXPECT_EQ(mtime(*cached), written->meta.mtime_ns);
  (void)list("/");
  EXPECT_EQ(mtime(*second), written->meta.mtime_ns);
  (void)read("/f");
  EXPECT_EQ(mtime(*cached), written->meta.mtime_ns);
  EXPECT_EQ(backend->stat(ctx, path_of("/f"))->mtime_ns, written->meta.mtime_ns);
}
INSTANTIATE_TEST_SUITE_P(Stacks, CaseD44Cached, all_stacks(), stack_name);

}  // namespace
}  // namespace ragfs
