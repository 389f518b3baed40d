// Reading ahead: what is an occasion for it, what is read then, what is not, and that it leaves nothing stale.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;

class Prefetch : public HookedFixture {
 protected:
  void SetUp() override { begin({}, {}); }
  void TearDown() override {
    if (cached) {
      EXPECT_TRUE(cached->stop_prefetch(Deadline::in_ms(20'000)));
    }
    HookedFixture::TearDown();
  }

  // Without hot keys: every miss would be an occasion. /r with three directories of an abstract, an overview and a
  // page.
  void begin(CoherenceConfig config, CachedMountConfig mount, PrefetchConfig prefetch = {},
             uint64_t busy_reads_per_second = 0) {
    prefetch.enabled = true;
    prefetch.busy_reads_per_second = busy_reads_per_second;
    config.prefetch = prefetch;
    config.hot_keys = false;
    config.guard.operation_timeout_ms = 5'000;
    open_hooked(std::move(config), std::move(mount), clock);
    for (const char* name : {"a", "b", "c"}) make_directory(fmt::format("/r/{}", name));
    watch();
  }
  void make_directory(const std::string& path) {
    put_in_backend(path + "/.abstract.md", "abstract of " + path);
    put_in_backend(path + "/.overview.md", "overview of " + path);
    put_in_backend(path + "/page.md", "page of " + path);
  }
  // Notes every read of the backend, in order.
  void watch() {
    hooked->set_before([this](std::string_view operation, PathView path) {
      if (operation == "read_file" || operation == "read_dir" || operation == "read") {
        MutexLock lock(mutex);
        reads.push_back(fmt::format("{} {}", operation, path.text()));
      }
      return std::optional<Error>();
    });
    forget();
  }
  void forget() {
    MutexLock lock(mutex);
    reads.clear();
  }
  std::vector<std::string> backend_reads() {
    MutexLock lock(mutex);
    return reads;
  }
  size_t reads_with(std::string_view part) {
    const auto all = backend_reads();
    return static_cast<size_t>(
        std::ranges::count_if(all, [&](const std::string& read) { return read.contains(part); }));
  }
  bool idle() { return domain->prefetch_lane()->wait_until_idle(Deadline::in_ms(20'000)); }
  uint64_t count(CacheCounter counter) const { return cached->count(counter); }
  uint64_t triggered() const { return count(CacheCounter::prefetch_triggered); }

  ManualClock clock;
  Mutex mutex;
  std::vector<std::string> reads;
};

// --- the occasions ---

TEST_F(Prefetch, AListingReadsTheAbstractsAtOnceAndTheRestLater) {
  begin({}, {}, {.concurrency = 1});
  EXPECT_EQ(list("/r"), "a b c");
  ASSERT_TRUE(idle());
  EXPECT_EQ(backend_reads(),
            (std::vector<std::string>{"read_dir /r", "read_file /r/a/.abstract.md", "read_file /r/b/.abstract.md",
                                      "read_file /r/c/.abstract.md", "read_file /r/a/.overview.md", "read_dir /r/a",
                                      "read_file /r/b/.overview.md", "read_dir /r/b", "read_file /r/c/.overview.md",
                                      "read_dir /r/c"}));
  EXPECT_EQ(count(CacheCounter::prefetch_filled), 9U);
  forget();
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(read(fmt::format("/r/{}/.abstract.md", name)), fmt::format("abstract of /r/{}", name));
    EXPECT_EQ(list(fmt::format("/r/{}", name)), ".abstract.md .overview.md page.md");
  }
  EXPECT_TRUE(backend_reads().empty()) << "all of it was there";
  EXPECT_EQ(count(CacheCounter::prefetch_hit), 6U);
  EXPECT_EQ(read("/r/a/.abstract.md"), "abstract of /r/a");
  EXPECT_EQ(count(CacheCounter::prefetch_hit), 6U) << "the second reader is served by the cache, not by reading ahead";
}

TEST_F(Prefetch, TwoFilesInARowReadThoseThatFollow) {
  for (int i = 0; i < 60; ++i) put_in_backend(fmt::format("/s/p{:02}.md", i), fmt::format("{}", i));
  EXPECT_EQ(read("/s/p00.md"), "0");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U) << "one read says nothing";
  EXPECT_EQ(read("/s/p01.md"), "1");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 1U);
  EXPECT_EQ(reads_with("read_file"), 2U + 16U);
  // Half of them asked for: the next ones follow, so that a reader who goes on never waits.
  for (int i = 2; i < 60; ++i) {
    EXPECT_EQ(read(fmt::format("/s/p{:02}.md", i)), fmt::format("{}", i));
    ASSERT_TRUE(idle());
  }
  EXPECT_EQ(count(CacheCounter::file_miss), 2U);
  EXPECT_EQ(count(CacheCounter::prefetch_hit), 58U);
  EXPECT_EQ(reads_with("read_file"), 60U) << "nothing is read twice";
}

TEST_F(Prefetch, TwoFilesThatDoNotFollowEachOtherReadNothing) {
  for (int i = 0; i < 9; ++i) put_in_backend(fmt::format("/s/p{}.md", i), "page");
  for (const char* path : {"/s/p0.md", "/s/p5.md", "/s/p3.md", "/s/p1.md"}) EXPECT_EQ(read(path), "page");
  ASSERT_TRUE(idle());
  EXPECT_EQ(count(CacheCounter::prefetch_filled), 1U) << "the listing that told so";
  EXPECT_EQ(reads_with("read_file"), 4U);
}

TEST_F(Prefetch, AHitOnAnOverviewReadsWhatItNamesInItsOrder) {
  begin({}, {}, {.concurrency = 1});
  put_in_backend("/o/.overview.md", "Begin with [setup](setup.md), then guide.md and the tutorial/ pages. Not a.md2.");
  for (const char* name : {"a.md", "guide.md", "other.md", "setup.md"}) put_in_backend(fmt::format("/o/{}", name), "x");
  put_in_backend("/o/tutorial/.overview.md", "x");
  EXPECT_NE(read("/o/.overview.md"), "");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U) << "a miss is no hit";
  forget();
  EXPECT_NE(read("/o/.overview.md"), "");
  ASSERT_TRUE(idle());
  EXPECT_EQ(backend_reads(), (std::vector<std::string>{"read_dir /o", "read_file /o/setup.md", "read_file /o/guide.md",
                                                       "read_file /o/tutorial/.overview.md"}));
}

TEST_F(Prefetch, EnteringAScopeReadsItsHotKeys) {
  CoherenceConfig config;
  config.prefetch.enabled = true;
  open_over(config, {}, clock);
  for (const char* file : {"hot.md", "warm.md", "cold.md", "door.md"}) {
    put_in_backend(fmt::format("/acct/resources/docs/{}", file), "x");
    put_in_backend(fmt::format("/acct/resources/other/{}", file), "x");
  }
  for (int i = 0; i < 3; ++i) (void)read("/acct/resources/docs/hot.md");
  for (int i = 0; i < 2; ++i) (void)read("/acct/resources/docs/warm.md");
  ASSERT_TRUE(idle());
  ASSERT_TRUE(cached->invalidate(ctx, path_of("/")));  // what is hot is known; nothing is cached
  clock.advance_ms(2'001);
  forget();
  (void)read("/acct/resources/other/door.md");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with("docs"), 0U) << "another scope";
  (void)read("/acct/resources/docs/door.md");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with("docs/hot.md"), 1U);
  EXPECT_EQ(reads_with("docs/warm.md"), 1U);
  EXPECT_EQ(reads_with("docs/cold.md"), 0U);
}

// --- bounds ---

TEST_F(Prefetch, OneOccasionReadsSoManyObjectsAndTheNextOneGoesOn) {
  begin({}, {}, {.max_objects = 4});
  for (int i = 0; i < 10; ++i) put_in_backend(fmt::format("/many/d{}/.abstract.md", i), "x");
  (void)list("/many");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with(".abstract.md"), 4U);
  (void)list("/many");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with(".abstract.md"), 4U) << "too soon";
  EXPECT_EQ(count(CacheCounter::prefetch_cooldown), 1U);
  clock.advance_ms(2'001);
  (void)list("/many");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with(".abstract.md"), 8U);
  EXPECT_EQ(triggered(), 2U);
}

TEST_F(Prefetch, OneGetManyFindsWhatIsAbsent) {
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.zero_copy = false;
  provider->set_capabilities(capabilities);
  for (const char* name : {"a", "b", "c"}) (void)read(fmt::format("/r/{}/.abstract.md", name));
  const auto held = PausePoints::arm("prefetch.looked_up", 2);
  (void)list("/r");
  ASSERT_TRUE(held->wait_for_arrival());
  EXPECT_LE(provider->calls(Op::get_many), 2U) << "one for the abstracts, one for the rest";
  held->release();
  ASSERT_TRUE(idle());
  EXPECT_EQ(provider->calls(Op::get_many), 2U);
  EXPECT_EQ(reads_with(".abstract.md"), 3U) << "those of the readers: what is there is not read again";
}

TEST_F(Prefetch, TheBytesOfASecondAreABound) {
  begin({}, {}, {.concurrency = 1, .bytes_per_second = 4'096});
  for (const char* name : {"a", "b", "c"})
    put_in_backend(fmt::format("/r/{}/.abstract.md", name), std::string(3'000, 'x'));
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with(".abstract.md"), 2U) << "the second one overdraws";
  EXPECT_EQ(reads_with(".overview.md"), 0U);
  EXPECT_EQ(count(CacheCounter::prefetch_dropped), 2U) << "the rest of the abstracts, and what had low priority";
}

TEST_F(Prefetch, WhenTheQueueIsFullTheTasksOfLowPriorityGoFirst) {
  begin({}, {}, {.concurrency = 1, .max_queued = 3});
  for (int d = 0; d < 4; ++d) make_directory(fmt::format("/q{}/sub", d));
  const auto held = PausePoints::arm("prefetch.before_read");
  for (int d = 0; d < 4; ++d) {
    (void)list(fmt::format("/q{}", d));
    if (d == 0) {
      ASSERT_TRUE(held->wait_for_arrival());
    }
  }
  held->release();
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with("/sub/.abstract.md"), 4U) << "all that is wanted at once";
  EXPECT_EQ(reads_with("/sub/.overview.md"), 0U);
  EXPECT_EQ(count(CacheCounter::prefetch_dropped), 4U);
}

// --- what is no occasion ---

struct NoPrefetchCase {
  std::string name;
  CachePolicyConfig policy;
};

class NoPrefetch : public Prefetch, public ::testing::WithParamInterface<NoPrefetchCase> {
 protected:
  void SetUp() override {}
};

// The class of the directory itself, and of directories in one that may be read ahead.
TEST_P(NoPrefetch, OfAClassThatForbidsItNothingIsReadAhead) {
  CachedMountConfig mount;
  mount.policy = GetParam().policy;
  begin({}, mount);
  make_directory("/r/sensitive/inside");
  make_directory("/r/plain");
  for (int i = 0; i < 4; ++i) put_in_backend(fmt::format("/r/sensitive/p{}.md", i), "x");
  (void)list("/r/sensitive");
  for (int i = 0; i < 3; ++i) (void)read(fmt::format("/r/sensitive/p{}.md", i));
  for (int i = 0; i < 2; ++i) (void)read("/r/sensitive/inside/.overview.md");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U);
  forget();
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with("sensitive"), 0U);
  const bool root_is_cached = GetParam().name != "not_cacheable";
  EXPECT_EQ(reads_with("/r/plain/.abstract.md"), root_is_cached ? 1U : 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Classes, NoPrefetch,
    ::testing::Values(NoPrefetchCase{"no_prefetch", {.no_prefetch_prefixes = {"/r/sensitive"}}},
                      NoPrefetchCase{"bypass_prefix", {.bypass_prefixes = {"/r/sensitive"}}},
                      NoPrefetchCase{"bypass_glob", {.bypass_globs = {"/r/sensitive", "/r/sensitive/**"}}},
                      NoPrefetchCase{"not_cacheable", {.cacheable_prefixes = {"/r/plain", "/r/a"}}},
                      NoPrefetchCase{"permission_dependent", {.permission_dependent_prefixes = {"/r/sensitive"}}},
                      NoPrefetchCase{"negative_only",
                                     {.negative_only_prefixes = {"/r/sensitive"}, .negative_ttl_ms = 1'000}}),
    [](const auto& info) { return info.param.name; });

TEST_F(Prefetch, CallersPastTheCacheWalksAndBatchesAreNoOccasion) {
  Context past;
  past.bypass_cache = true;
  (void)cached->read_dir(past, path_of("/r"));
  (void)cached->read_internal_dir(ctx, path_of("/r"));
  ASSERT_TRUE(cached->tree(ctx, path_of("/r"), {}));
  ASSERT_TRUE(cached->glob(ctx, path_of("/r"), "**/*.md", {}));
  const std::vector<Path> files = {path_of("/r/a/.overview.md"), path_of("/r/b/.overview.md")};
  for (int i = 0; i < 2; ++i) (void)cached->read_many(ctx, std::vector<PathView>(files.begin(), files.end()));
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U);
}

TEST_F(Prefetch, LockAndControlFilesAreNeverReadAhead) {
  for (const char* name : {"p1.md", "p2.md", "p3.lock", "size", "p4.md"})
    put_in_backend(fmt::format("/s/{}", name), "x");
  (void)read("/s/p1.md");
  (void)read("/s/p2.md");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with("/s/p4.md"), 1U);
  EXPECT_EQ(reads_with("lock") + reads_with("size"), 0U);
}

TEST_F(Prefetch, WithTheCacheOffOrTheProviderDownNothingIsReadAhead) {
  cached->set_enabled(false);
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U);
  cached->set_enabled(true);
  provider->set_down(true);
  for (int i = 0; domain->provider().state() == BreakerState::closed && i < 1'000; ++i) (void)read("/r/a/page.md");
  ASSERT_NE(domain->provider().state(), BreakerState::closed);
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(triggered(), 0U) << "what would be read could not be kept";
}

TEST_F(Prefetch, IsOffUnlessItIsAskedFor) {
  open_hooked({}, {});
  EXPECT_EQ(domain->prefetch_lane(), nullptr);
  make_directory("/r/a");
  (void)list("/r");
  EXPECT_EQ(read("/r/a/.abstract.md"), "abstract of /r/a");
  EXPECT_EQ(triggered(), 0U);
}

// --- what is counted ---

TEST_F(Prefetch, WhatGoesBeforeAnyoneAskedIsWaste) {
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(count(CacheCounter::prefetch_filled), 9U);
  ASSERT_TRUE(write("/r/a/.abstract.md", "new"));  // and the listing of /r/a shows another size
  EXPECT_EQ(count(CacheCounter::prefetch_waste), 2U);
  EXPECT_EQ(read("/r/a/.abstract.md"), "new");
  EXPECT_EQ(count(CacheCounter::prefetch_hit), 0U) << "that is what was written";
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/r/b")));
  EXPECT_EQ(read("/r/b/.abstract.md"), "ERROR not_found");
  EXPECT_EQ(count(CacheCounter::prefetch_waste), 3U) << "found out by the reader";
  clock.advance_ms(601'000);
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(count(CacheCounter::prefetch_hit) + count(CacheCounter::prefetch_waste), 9U) << "the others are old";
}

TEST_F(Prefetch, AFailedReadIsCountedAndNoReadersBusiness) {
  hooked->set_before([](std::string_view operation, PathView path) {
    const bool fails = operation == "read_file" && path.text() == "/r/b/.abstract.md";
    return fails ? std::optional(Error{ErrorCode::io, "disk"}) : std::nullopt;
  });
  EXPECT_EQ(list("/r"), "a b c");
  ASSERT_TRUE(idle());
  EXPECT_EQ(count(CacheCounter::prefetch_failed), 1U);
  EXPECT_EQ(count(CacheCounter::prefetch_filled), 8U);
  EXPECT_EQ(read("/r/c/.abstract.md"), "abstract of /r/c");
}

TEST_F(Prefetch, ReadingAheadCountsNoHitAndNoMissOfReaders) {
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(count(CacheCounter::file_hit) + count(CacheCounter::file_miss), 0U);
  EXPECT_EQ(count(CacheCounter::directory_miss), 1U);
}

// --- coherence ---

TEST_F(Prefetch, AReaderJoinsTheReadAheadThatRuns) {
  begin({}, {}, {.concurrency = 1});  // what is held is the first one: the abstract of /r/a
  const auto held = PausePoints::arm("fill.after_backend_read");
  (void)list("/r");
  ASSERT_TRUE(held->wait_for_arrival());
  std::string seen;
  std::jthread reader([&] { seen = read("/r/a/.abstract.md"); });
  const Deadline longest = Deadline::in_ms(20'000);
  while (domain->file_flights().counts().followers.load() == 0 && !longest.expired()) std::this_thread::yield();
  EXPECT_EQ(domain->file_flights().counts().followers.load(), 1U);
  held->release();
  reader.join();
  ASSERT_TRUE(idle());
  EXPECT_EQ(seen, "abstract of /r/a");
  EXPECT_EQ(reads_with("/r/a/.abstract.md"), 1U);
}

// As a reader's fill: what was read before the mutation is not served after it.
TEST_F(Prefetch, AMutationBetweenTheReadAheadAndItsPutWins) {
  struct Story {
    const char* name;
    std::function<bool()> mutation;
    std::string expected;
  };
  const std::vector<Story> stories = {
      {"write", [&] { return write("/r/a/.abstract.md", "new"); }, "new"},
      {"remove", [&] { return cached->remove(ctx, path_of("/r/a/.abstract.md")).has_value(); }, "ERROR not_found"},
      {"directory removed", [&] { return cached->remove_all(ctx, path_of("/r/a")).has_value(); }, "ERROR not_found"},
      {"directory renamed", [&] { return cached->rename(ctx, path_of("/r/a"), path_of("/r/z")).has_value(); },
       "ERROR not_found"},
      {"another in its place",
       [&] {
         return cached->rename(ctx, path_of("/r/a"), path_of("/r/z")).has_value() &&
                cached->rename(ctx, path_of("/r/b"), path_of("/r/a")).has_value();
       },
       "abstract of /r/b"}};
  for (const char* point : {"fill.after_backend_read", "fill.before_put"}) {
    for (const Story& story : stories) {
      SCOPED_TRACE(fmt::format("{} at {}", story.name, point));
      begin({}, {}, {.concurrency = 1});
      (void)list("/r");  // the abstract of /r/a is the first that is read
      ASSERT_TRUE(idle());
      ASSERT_TRUE(cached->invalidate(ctx, path_of("/r/a/.abstract.md")));
      (void)list("/r");  // too soon for another occasion; from here on a hit
      ASSERT_EQ(triggered(), 1U);
      clock.advance_ms(2'001);
      const auto held = PausePoints::arm(point);
      (void)cached->read_dir(ctx, path_of("/r"));
      ASSERT_TRUE(held->wait_for_arrival());
      ASSERT_TRUE(story.mutation());
      EXPECT_EQ(read("/r/a/.abstract.md"), story.expected);
      held->release();
      ASSERT_TRUE(idle());
      EXPECT_EQ(read("/r/a/.abstract.md"), story.expected);
      PausePoints::clear();
    }
  }
}

TEST_F(Prefetch, FillsTheNearTierToo) {
  near = EmbeddedProvider::create({.dram_bytes = uint64_t{4} << 20}).value();
  begin({}, {});
  ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
  capabilities.zero_copy = false;
  provider->set_capabilities(capabilities);
  CoherenceConfig config;
  config.prefetch.enabled = true;
  // What another process, or this one before, left in the provider, and what nobody read yet.
  open_over(config, {}, clock);
  (void)read("/r/a/.abstract.md");
  domain->near()->clear();
  (void)list("/r");
  ASSERT_TRUE(idle());
  provider->reset_counters();
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(read(fmt::format("/r/{}/.abstract.md", name)), fmt::format("abstract of /r/{}", name));
  }
  EXPECT_EQ(provider->total_calls(), 0U);
  EXPECT_EQ(count(CacheCounter::prefetch_hit), 3U) << "the copy of what the provider had counts as well";
}

TEST_F(Prefetch, ANearCopyIsOvertakenByAMutationAsAReadersIs) {
  near = EmbeddedProvider::create({.dram_bytes = uint64_t{4} << 20}).value();
  begin({}, {}, {.concurrency = 1});
  (void)read("/r/a/.abstract.md");
  domain->near()->clear();
  const auto held = PausePoints::arm("lookup_many.after_get");
  (void)list("/r");
  ASSERT_TRUE(held->wait_for_arrival());
  ASSERT_TRUE(write("/r/a/.abstract.md", "new"));
  held->release();
  ASSERT_TRUE(idle());
  EXPECT_EQ(read("/r/a/.abstract.md"), "new");
}

// --- the end ---

TEST_F(Prefetch, ClosingWaitsForItWithinABound) {
  const auto held = PausePoints::arm("fill.after_backend_read");
  (void)list("/r");
  ASSERT_TRUE(held->wait_for_arrival());
  const int64_t began_ns = Clock::system().monotonic_ns();
  EXPECT_FALSE(cached->stop_prefetch(Deadline::in_ms(50)));
  EXPECT_LT(Clock::system().monotonic_ns() - began_ns, 5'000'000'000);
  held->release();
  EXPECT_TRUE(cached->stop_prefetch(Deadline::in_ms(20'000)));
  forget();
  clock.advance_ms(10'000);
  (void)list("/r");
  ASSERT_TRUE(idle());
  EXPECT_EQ(reads_with(".abstract.md"), 0U) << "nothing begins any more";
  EXPECT_EQ(list("/r"), "a b c") << "readers go on";
}

// One read in a window of 5 ms is more than one in a second.
TEST_F(Prefetch, ReadersWhoAskWithoutAPauseAreNotAnOccasion) {
  begin({}, {}, {}, 1);
  const auto list = [&] { ASSERT_TRUE(cached->read_dir(ctx, PathView::from_normal("/r"))); };
  list();
  const auto until = Deadline::in_ms(20'000);
  while (count(CacheCounter::prefetch_held_back) == 0 && !until.expired()) list();
  EXPECT_GT(count(CacheCounter::prefetch_held_back), 0U);
  // A pause, and the next one who asks is an occasion again.
  while (domain->prefetch_lane()->busy() && !until.expired()) std::this_thread::yield();
  EXPECT_FALSE(domain->prefetch_lane()->busy());
  const auto filled = [&] { return count(CacheCounter::prefetch_filled); };
  while (filled() == 0 && !until.expired()) {
    while (domain->prefetch_lane()->busy() && !until.expired()) std::this_thread::yield();
    clock.advance_ms(10'000);  // past the cooldown
    list();
    EXPECT_TRUE(idle());
  }
  EXPECT_GT(filled(), 0U);
}

}  // namespace
}  // namespace ragfs
