// Many paths in one call: round trips are counted at the provider, and every answer is that of the single call.
#include <fmt/format.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;

class Batches : public HookedFixture {
 protected:
  // As a provider in another process: nothing is found without a call.
  void be_remote(size_t max_batch_keys = 1000) {
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.zero_copy = false;
    capabilities.max_batch_keys = max_batch_keys;
    provider->set_capabilities(capabilities);
    open_over({}, {});
  }
  std::vector<Path> files(size_t count) {
    std::vector<Path> paths;
    for (size_t i = 0; i < count; ++i) paths.push_back(path_of(fmt::format("/acct/resources/r/{}.md", i)));
    return paths;
  }
  static std::vector<PathView> views(const std::vector<Path>& paths) { return {paths.begin(), paths.end()}; }
  void put_all(const std::vector<Path>& paths) {
    for (const Path& path : paths) put_in_backend(path.text(), "of " + path.text());
  }
  uint64_t provider_reads() const { return provider->calls(Op::get) + provider->calls(Op::get_many); }
};

TEST_F(Batches, AWarmBatchIsOneRoundTripForEachBatchOfTheProvider) {
  be_remote(100);
  const std::vector<Path> paths = files(250);
  put_all(paths);
  (void)cached->read_many(ctx, views(paths));
  provider->reset_counters();
  hooked->forget_calls();
  const auto answers = cached->read_many(ctx, views(paths));
  ASSERT_EQ(answers.size(), paths.size());
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(text_of(answers[i]), "of " + paths[i].text());
  EXPECT_EQ(provider->calls(Op::get_many), 3U);
  EXPECT_EQ(provider->calls(Op::get), 0U);
  EXPECT_EQ(hooked->calls("read_file"), 0U);
}

TEST_F(Batches, AColdBatchReadsTheBackendSideBySideWithinABound) {
  CoherenceConfig config;
  config.batch_width = 4;
  open_hooked(config, {});
  const std::vector<Path> paths = files(60);
  put_all(paths);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  hooked->set_before([&](std::string_view operation, PathView) {
    if (operation != "read_file") return std::optional<Error>();
    const int running = ++now;
    int seen = most.load();
    while (seen < running && !most.compare_exchange_weak(seen, running)) {
    }
    // Until another one reads too: the batch must not be read one after the other.
    const Deadline until = Deadline::in_ms(5'000);
    while (most.load() < 2 && !until.expired()) std::this_thread::yield();
    --now;
    return std::optional<Error>();
  });
  const auto answers = cached->read_many(ctx, views(paths));
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(text_of(answers[i]), "of " + paths[i].text());
  EXPECT_GE(most.load(), 2);
  EXPECT_LE(most.load(), 4);
  EXPECT_EQ(hooked->calls("read_file"), paths.size());
  hooked->set_before({});
  hooked->forget_calls();
  (void)cached->read_many(ctx, views(paths));
  EXPECT_EQ(hooked->calls("read_file"), 0U) << "what was missing is cached now";
}

TEST_F(Batches, EachPathHasItsOwnAnswer) {
  be_remote();
  put_in_backend("/a/b/file", "1");
  put_in_backend("/a/b/x.lock", "lock");
  const std::vector<Path> paths = {path_of("/a/b/file"), path_of("/a/b/none"), path_of("/a/b"), path_of("/a/b/x.lock"),
                                   path_of("/a/b/file")};
  for (const char* state : {"cold", "warm"}) {
    SCOPED_TRACE(state);
    const auto read = cached->read_many(ctx, views(paths));
    const auto infos = cached->stat_many(ctx, views(paths));
    for (size_t i = 0; i < paths.size(); ++i) {
      SCOPED_TRACE(paths[i].text());
      EXPECT_EQ(text_of(read[i]), this->read(paths[i].text()));
      const auto single = backend->stat(ctx, paths[i]);
      EXPECT_EQ(kind_of(infos[i]), kind_of(single));
      if (single && infos[i]) {
        EXPECT_EQ(*infos[i], *single);
      }
    }
  }
}

TEST_F(Batches, ALostProviderCostsOneDeadlineAndNoAnswer) {
  be_remote();
  const std::vector<Path> paths = files(20);
  put_all(paths);
  (void)cached->read_many(ctx, views(paths));
  provider->set_down(true);
  const auto answers = cached->read_many(ctx, views(paths));
  for (size_t i = 0; i < paths.size(); ++i) EXPECT_EQ(text_of(answers[i]), "of " + paths[i].text());
}

TEST_F(Batches, StatOfManyIsAnsweredFromTheirListingInOneRoundTrip) {
  be_remote();
  const std::vector<Path> paths = files(500);
  put_all(paths);
  ASSERT_NE(list("/acct/resources/r"), "");
  provider->reset_counters();
  hooked->forget_calls();
  const auto infos = cached->stat_many(ctx, views(paths));
  for (size_t i = 0; i < paths.size(); ++i) {
    ASSERT_TRUE(infos[i]);
    EXPECT_EQ(*infos[i], *backend->stat(ctx, paths[i]));
  }
  EXPECT_EQ(provider_reads(), 1U) << "500 files and one listing";
  EXPECT_EQ(hooked->calls("stat"), paths.size()) << "those of this test alone";
}

TEST_F(Batches, ExistsOfManyKnowsWhatAListingProves) {
  be_remote();
  put_in_backend("/d/here", "1");
  ASSERT_EQ(list("/d"), "here");
  const std::vector<Path> paths = {path_of("/d/here"), path_of("/d/none"), path_of("/other/none")};
  hooked->forget_calls();
  provider->reset_counters();
  const auto there = cached->exists_many(ctx, views(paths));
  ASSERT_TRUE(there[0] && there[1] && there[2]);
  EXPECT_TRUE(*there[0]);
  EXPECT_FALSE(*there[1]);
  EXPECT_FALSE(*there[2]);
  const bool proves = backend->traits().listings_prove_absence;
  EXPECT_EQ(hooked->calls("stat"), proves ? 1U : 2U);
  EXPECT_EQ(provider_reads(), 1U);
}

TEST_F(Batches, AStatAfterAWriteIsNotTheListingsFromBefore) {
  be_remote();
  put_in_backend("/d/file", "1");
  ASSERT_EQ(list("/d"), "file");
  ASSERT_TRUE(write("/d/file", "longer", WriteFlag::append));
  const std::vector<Path> paths = {path_of("/d/file"), path_of("/d")};
  const auto infos = cached->stat_many(ctx, views(paths));
  ASSERT_TRUE(infos[0]);
  EXPECT_EQ(infos[0]->size, 7U);
}

TEST_F(Batches, AMutationBetweenTheLookUpAndTheGetIsSeen) {
  be_remote();
  const std::vector<Path> paths = files(3);
  put_all(paths);
  (void)cached->read_many(ctx, views(paths));
  auto armed = PausePoints::arm("lookup_many.before_get");
  std::vector<Result<Bytes>> answers;
  std::thread reader([&] { answers = cached->read_many(ctx, views(paths)); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(write(paths[1].text(), "new"));
  armed.reset();
  reader.join();
  EXPECT_EQ(text_of(answers[0]), "of " + paths[0].text());
  EXPECT_EQ(text_of(answers[2]), "of " + paths[2].text());
  // The read began before the write returned: both are right. What was stored must be the new one.
  EXPECT_EQ(read(paths[1].text()), "new");
  EXPECT_EQ(text_of(cached->read_many(ctx, views(paths))[1]), "new");
}

TEST_F(Batches, ABatchThatReadTheBackendBeforeAWriteDoesNotOutliveIt) {
  const std::vector<Path> paths = files(3);
  put_all(paths);
  auto armed = PausePoints::arm("fill.after_backend_read");
  std::thread reader([&] { (void)cached->read_many(ctx, views(paths)); });
  ASSERT_TRUE(armed->wait_for_arrival());
  for (const Path& path : paths) ASSERT_TRUE(write(path.text(), "new"));
  armed.reset();
  reader.join();
  for (const Path& path : paths) EXPECT_EQ(read(path.text()), "new");
  for (const auto& answer : cached->read_many(ctx, views(paths))) EXPECT_EQ(text_of(answer), "new");
}

TEST_F(Batches, ListingsOfManyDirectoriesComeInOneRoundTrip) {
  be_remote();
  std::vector<Path> directories;
  for (int i = 0; i < 40; ++i) {
    put_in_backend(fmt::format("/d/{}/file", i), "1");
    directories.push_back(path_of(fmt::format("/d/{}", i)));
  }
  directories.push_back(path_of("/none"));
  (void)cached->read_dir_many(ctx, views(directories));
  provider->reset_counters();
  hooked->forget_calls();
  const auto listings = cached->read_dir_many(ctx, views(directories));
  for (size_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(listings[i]);
    ASSERT_EQ(listings[i]->size(), 1U);
    EXPECT_EQ(listings[i]->front().name, "file");
  }
  EXPECT_EQ(kind_of(listings[40]), "not_found");
  EXPECT_EQ(provider_reads(), 1U);
  EXPECT_EQ(hooked->calls("read_dir"), 1U) << "the one that is not there";
}

TEST_F(Batches, BypassAsksTheBackendForEach) {
  const std::vector<Path> paths = files(3);
  put_all(paths);
  (void)cached->read_many(ctx, views(paths));
  ASSERT_TRUE(backend->write(ctx, paths[0], "behind the cache", 0, WriteFlag::create));
  Context bypass;
  bypass.bypass_cache = true;
  EXPECT_EQ(text_of(cached->read_many(bypass, views(paths))[0]), "behind the cache");
  const auto infos = cached->stat_many(bypass, views(paths));
  ASSERT_TRUE(infos[0]);
  EXPECT_EQ(infos[0]->size, std::string("behind the cache").size());
}

TEST_F(Batches, NothingIsAskedForNothing) {
  be_remote();
  provider->reset_counters();
  EXPECT_TRUE(cached->read_many(ctx, {}).empty());
  EXPECT_TRUE(cached->stat_many(ctx, {}).empty());
  EXPECT_TRUE(cached->read_dir_many(ctx, {}).empty());
  EXPECT_EQ(provider->total_calls(), 0U);
}

}  // namespace
}  // namespace ragfs
