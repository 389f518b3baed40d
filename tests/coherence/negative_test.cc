// Remembered absence: off unless asked for, only for a true "not found", ended by whatever may have created the path.
#include <gtest/gtest.h>

#include <functional>

#include "tests/coherence/hooked_fixture.h"

namespace ragfs {
namespace {

constexpr int64_t kTtlMs = 1'000;
const char* const kPath = "/a/b/.abstract.md";

class NegativeTest : public HookedFixture {
 protected:
  void SetUp() override {
    mount.policy.negative_ttl_ms = kTtlMs;
    open_hooked({}, mount, clock);
  }
  uint64_t negative_hits() const { return cached->count(CacheCounter::negative_hit); }
  ManualClock clock;
  CachedMountConfig mount;
};

TEST_F(NegativeTest, IsOffByDefault) {
  open_hooked({}, {}, clock);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/.abstract.md"), "ERROR not_found");
  EXPECT_EQ(hooked->calls("read_file"), 3U);
  EXPECT_EQ(negative_hits(), 0U);
}

TEST_F(NegativeTest, RemembersTheNamesOfThePolicyOnly) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/.abstract.md"), "ERROR not_found");
  EXPECT_EQ(hooked->calls("read_file"), 1U);
  EXPECT_EQ(negative_hits(), 2U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read("/other.md"), "ERROR not_found");
  EXPECT_EQ(hooked->calls("read_file"), 4U);
}

TEST_F(NegativeTest, EndsWithItsTimeWhichNoHitLengthens) {
  EXPECT_EQ(read("/.abstract.md"), "ERROR not_found");
  put_in_backend("/.abstract.md", "behind");
  for (int i = 0; i < 9; ++i) {
    clock.advance_ms(kTtlMs / 10);
    EXPECT_EQ(read("/.abstract.md"), "ERROR not_found");
  }
  clock.advance_ms(kTtlMs / 10);
  EXPECT_EQ(read("/.abstract.md"), "behind");
}

TEST_F(NegativeTest, NoOtherErrorIsRemembered) {
  for (const ErrorCode code : {ErrorCode::io, ErrorCode::timeout, ErrorCode::permission_denied, ErrorCode::network,
                               ErrorCode::is_a_directory, ErrorCode::internal}) {
    put_in_backend("/.abstract.md", "there");
    fail_operation("read_file", code);
    EXPECT_EQ(read("/.abstract.md"), "ERROR " + std::string(kind_name(code)));
    hooked->set_before({});
    domain->new_epoch();
    EXPECT_EQ(read("/.abstract.md"), "there") << kind_name(code);
    domain->new_epoch();
  }
  EXPECT_EQ(negative_hits(), 0U);
}

TEST_F(NegativeTest, StatAndExistsAskOnAndBypassAsksTheBackend) {
  EXPECT_EQ(read("/.abstract.md"), "ERROR not_found");
  put_in_backend("/.abstract.md", "behind");
  Context bypass;
  bypass.bypass_cache = true;
  EXPECT_EQ(text_of(cached->read(bypass, path_of("/.abstract.md"), 0, 0)), "behind");
}

struct Creation {
  const char* name;
  std::function<bool(CachedFileSystem&, const Context&)> run;
};
void PrintTo(const Creation& creation, std::ostream* out) { *out << creation.name; }

std::vector<Creation> creations() {
  using Fs = CachedFileSystem;
  const Path path = path_of(kPath);
  return {
      {"write", [=](Fs& fs, const Context& c) { return fs.write(c, path, "x", 0, WriteFlag::create).has_value(); }},
      {"create", [=](Fs& fs, const Context& c) { return fs.create(c, path).has_value(); }},
      {"touch", [=](Fs& fs, const Context& c) { return fs.touch(c, path).has_value(); }},
      {"mkdir", [=](Fs& fs, const Context& c) { return fs.mkdir(c, path, kDefaultDirMode).has_value(); }},
      {"copy", [=](Fs& fs, const Context& c) { return fs.copy(c, path_of("/source/.abstract.md"), path).has_value(); }},
      {"rename_onto",
       [=](Fs& fs, const Context& c) { return fs.rename(c, path_of("/source/.abstract.md"), path).has_value(); }},
      {"replace",
       [=](Fs& fs, const Context& c) { return fs.replace(c, path_of("/source/.abstract.md"), path).has_value(); }},
      {"rename_of_an_ancestor",
       [=](Fs& fs, const Context& c) {
         return fs.remove(c, path_of("/a/b")) && fs.rename(c, path_of("/source"), path_of("/a/b"));
       }},
      {"rename_far_above",
       [=](Fs& fs, const Context& c) {
         return fs.mkdir(c, path_of("/top"), kDefaultDirMode) && fs.rename(c, path_of("/source"), path_of("/top/b")) &&
                fs.remove_all(c, path_of("/a")) && fs.rename(c, path_of("/top"), path_of("/a"));
       }},
      {"as_a_parent",
       [=](Fs& fs, const Context& c) {
         return fs.ensure_parent_dirs(c, path_of(std::string(kPath) + "/below"), kDefaultDirMode).has_value();
       }},
      {"copy_below",
       [=](Fs& fs, const Context& c) {
         return fs.copy(c, path_of("/source/.abstract.md"), path_of(std::string(kPath) + "/below")).has_value();
       }},
  };
}

class NegativeEnds : public NegativeTest, public ::testing::WithParamInterface<Creation> {
 protected:
  void SetUp() override {
    NegativeTest::SetUp();
    put_in_backend("/a/b/other", "x");
    put_in_backend("/source/.abstract.md", "source");
    ASSERT_TRUE(backend->remove(ctx, path_of("/a/b/other")));
  }
};

TEST_P(NegativeEnds, WhenThePathComesIntoBeing) {
  EXPECT_EQ(read(kPath), "ERROR not_found");
  EXPECT_EQ(read(kPath), "ERROR not_found");
  ASSERT_EQ(negative_hits(), 1U);
  ASSERT_TRUE(GetParam().run(*cached, ctx));
  EXPECT_EQ(read(kPath), read_backend(kPath));
  EXPECT_NE(read(kPath), "ERROR not_found");
}

// The read that found nothing began before the creation and remembers after it.
TEST_P(NegativeEnds, ForASlowReadThatRemembersAfterwards) {
  for (const char* point : {"fill.after_backend_read", "negative.before_remember"}) {
    NegativeEnds::SetUp();
    auto armed = PausePoints::arm(point);
    std::jthread reader([&] { (void)read(kPath); });
    ASSERT_TRUE(armed->wait_for_arrival());
    ASSERT_TRUE(GetParam().run(*cached, ctx));
    armed->release();
    reader.join();
    PausePoints::clear();
    EXPECT_NE(read(kPath), "ERROR not_found") << point;
    EXPECT_TRUE(domain->settler().drain(Deadline::in_ms(10'000)));
    EXPECT_NE(read(kPath), "ERROR not_found") << point;
  }
}

INSTANTIATE_TEST_SUITE_P(Creations, NegativeEnds, ::testing::ValuesIn(creations()),
                         [](const auto& info) { return std::string(info.param.name); });

// A new epoch drops the records; what an older read remembers after it must not count.
TEST_F(NegativeTest, AnEntryOfAnOlderEpochIsNone) {
  auto armed = PausePoints::arm("negative.before_remember");
  std::jthread reader([&] { (void)read("/.abstract.md"); });
  ASSERT_TRUE(armed->wait_for_arrival());
  ASSERT_TRUE(write("/.abstract.md", "there"));
  domain->new_epoch();
  armed->release();
  reader.join();
  EXPECT_EQ(read("/.abstract.md"), "there");
}

}  // namespace
}  // namespace ragfs
