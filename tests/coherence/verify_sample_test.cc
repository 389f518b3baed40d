// verify_sample: hits compared with the backend while the cache is in use.
#include <gtest/gtest.h>

#include "ragfs/providers/embedded/embedded_provider.h"
#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

class VerifySample : public HookedFixture {
 protected:
  void open_with(uint32_t one_in, CachedMountConfig mount = {}) {
    mount.verify_one_in = one_in;
    open_hooked({}, mount);
    put_in_backend("/d/f", "data");
    EXPECT_EQ(read("/d/f"), "data");
  }
  uint64_t sampled() const { return cached->count(CacheCounter::verify_sampled); }
  uint64_t wrong() const { return cached->count(CacheCounter::verify_wrong); }
};

TEST_F(VerifySample, IsOffByDefault) {
  open_with(0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(read("/d/f"), "data");
  EXPECT_EQ(sampled(), 0U);
  EXPECT_EQ(hooked->calls("read"), 0U);
}

TEST_F(VerifySample, OneHitInSoManyIsComparedAndFindsNothingWrong) {
  open_with(10);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(read("/d/f"), "data");
  EXPECT_EQ(sampled(), 10U);
  EXPECT_EQ(hooked->calls("read"), 10U);
  EXPECT_EQ(wrong(), 0U);
}

TEST_F(VerifySample, WhatIsWrongIsCountedRefusedAndReadAnew) {
  open_with(1);
  put_in_backend("/d/f", "edited behind the cache");
  EXPECT_EQ(read("/d/f"), "edited behind the cache");
  EXPECT_EQ(wrong(), 1U);
  EXPECT_EQ(read("/d/f"), "edited behind the cache");
  EXPECT_EQ(wrong(), 1U);
  EXPECT_EQ(sampled(), 2U);
}

// A mutation between the hit and the look at the backend makes them differ rightly.
TEST_F(VerifySample, AMutationBesideTheComparisonIsNothingWrong) {
  open_with(1);
  bool once = true;
  hooked->set_before([&](std::string_view operation, PathView) -> std::optional<Error> {
    if (operation == "read" && std::exchange(once, false)) {
      EXPECT_TRUE(write("/d/f", "written meanwhile"));
    }
    return std::nullopt;
  });
  (void)read("/d/f");
  EXPECT_EQ(sampled(), 1U);
  EXPECT_EQ(wrong(), 0U);
  EXPECT_EQ(read("/d/f"), "written meanwhile");
}

TEST_F(VerifySample, WhereNothingMayWaitTheSampleIsTakenByTheNextRead) {
  open_with(3);
  CachedMountConfig mount;
  mount.verify_one_in = 3;
  cached.reset();
  domain = std::make_shared<CoherenceDomain>(CoherenceConfig{},
                                             std::shared_ptr<CacheProvider>(*EmbeddedProvider::create({})));
  cached = std::make_shared<CachedFileSystem>(backend, domain, mount);
  EXPECT_EQ(read("/d/f"), "data");
  int at_once = 0;
  for (int i = 0; i < 30; ++i) {
    if (cached->read_at_once(ctx, path_of("/d/f"))) {
      ++at_once;
    } else {
      EXPECT_EQ(read("/d/f"), "data");
    }
  }
  EXPECT_GE(at_once, 15);
  EXPECT_GE(sampled(), 7U);
}

TEST_F(VerifySample, NotWhereOthersChangeTheFiles) {
  CachedMountConfig mount;
  mount.revalidate_ms = 60'000;
  open_with(1, mount);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read("/d/f"), "data");
  EXPECT_EQ(sampled(), 0U);
}

}  // namespace
}  // namespace ragfs
