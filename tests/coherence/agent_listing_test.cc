// Listings with abstracts through the cache: round trips counted at the provider, reads at the backend.
#include <fmt/format.h>

#include <atomic>
#include <string>

#include "ragfs/fs/agent_listing.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

using Op = ScriptedProvider::Op;

class AgentListingThroughTheCache : public HookedFixture {
 protected:
  static constexpr size_t kDirectories = 1'000;

  void SetUp() override {
    HookedFixture::SetUp();
    for (size_t i = 0; i < kDirectories; ++i) {
      put_in_backend(fmt::format("/acct/resources/r/d{}/.abstract.md", i), fmt::format("about {}", i));
    }
  }
  void be_remote(size_t max_batch_keys) {
    ProviderCapabilities capabilities = ScriptedProvider::all_capabilities();
    capabilities.zero_copy = false;
    capabilities.max_batch_keys = max_batch_keys;
    provider->set_capabilities(capabilities);
    CoherenceConfig config;
    config.batch_width = kWidth;
    config.guard.operation_timeout_ms = 5'000;
    open_over(config, {});
    hooked->forget_calls();
    provider->reset_counters();
  }
  void expect_all() {
    const auto entries = list_with_abstracts(*cached, ctx, path_of("/acct/resources/r"));
    ASSERT_TRUE(entries);
    ASSERT_EQ(entries->size(), kDirectories);
    for (const AgentEntry& entry : *entries) {
      ASSERT_TRUE(entry.abstract) << entry.path;
      EXPECT_EQ(entry.abstract->view(), "about " + entry.info.name.substr(1));
    }
  }
  static constexpr size_t kWidth = 8;
};

TEST_F(AgentListingThroughTheCache, WarmIsOneListingAndABatchOfGetsForSoManyAbstracts) {
  for (const size_t batch : {1'000U, 512U, 64U}) {
    SCOPED_TRACE(batch);
    be_remote(batch);
    expect_all();
    hooked->forget_calls();
    provider->reset_counters();
    expect_all();
    EXPECT_EQ(provider->calls(Op::get), 1U) << "the listing";
    EXPECT_EQ(provider->calls(Op::get_many), (kDirectories + batch - 1) / batch);
    EXPECT_EQ(provider->total_calls(), 1 + (kDirectories + batch - 1) / batch) << "and nothing else";
    for (const char* operation : {"read", "read_file", "read_dir", "stat"}) EXPECT_EQ(hooked->calls(operation), 0U);
  }
}

TEST_F(AgentListingThroughTheCache, ColdReadsEachAbstractOnceWithinTheBoundOfTheBackend) {
  be_remote(1'000);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  hooked->set_before([&](std::string_view operation, PathView) {
    if (operation != "read_file") return std::optional<Error>();
    const int running = ++now;
    int seen = most.load();
    while (seen < running && !most.compare_exchange_weak(seen, running)) {
    }
    const Deadline until = Deadline::in_ms(5'000);
    while (most.load() < 2 && !until.expired()) std::this_thread::yield();
    --now;
    return std::optional<Error>();
  });
  expect_all();
  EXPECT_EQ(hooked->calls("read_file"), kDirectories);
  EXPECT_EQ(hooked->calls("read_dir"), 1U);
  EXPECT_GE(most.load(), 2);
  EXPECT_LE(most.load(), static_cast<int>(kWidth));
}

TEST_F(AgentListingThroughTheCache, DeeperLevelsTakeOneBatchOfListingsEach) {
  for (int i = 0; i < 50; ++i) put_in_backend(fmt::format("/acct/deep/a{}/b/.abstract.md", i), "below");
  be_remote(1'000);
  const AgentListingOptions options{.levels = 3, .show_hidden = true};
  const auto cold = list_with_abstracts(*cached, ctx, path_of("/acct/deep"), options);
  ASSERT_TRUE(cold);
  EXPECT_EQ(cold->size(), 150U);
  provider->reset_counters();
  const auto warm = list_with_abstracts(*cached, ctx, path_of("/acct/deep"), options);
  ASSERT_TRUE(warm);
  EXPECT_EQ(warm->size(), cold->size());
  EXPECT_EQ(provider->calls(Op::get), 1U) << "of the directory itself";
  EXPECT_EQ(provider->calls(Op::get_many), 3U)
      << "listings of two levels, and the abstracts (50 of them are not there)";
}

TEST_F(AgentListingThroughTheCache, AnAbstractThatIsWrittenShowsAtOnce) {
  be_remote(1'000);
  expect_all();
  ASSERT_TRUE(write("/acct/resources/r/d7/.abstract.md", "another"));
  ASSERT_TRUE(cached->remove_all(ctx, path_of("/acct/resources/r/d8")));
  const auto entries = list_with_abstracts(*cached, ctx, path_of("/acct/resources/r"));
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), kDirectories - 1);
  for (const AgentEntry& entry : *entries) {
    if (entry.info.name == "d7") {
      EXPECT_EQ(entry.abstract->view(), "another");
    }
    EXPECT_NE(entry.info.name, "d8");
  }
}

}  // namespace
}  // namespace ragfs
